#pragma once

#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "doppler/engine/runtime/runtime.h"
#include "doppler/executor.h"

namespace doppler {

class EmulatedDevices;

struct EmulatedOptions {
  // Real seconds per second (or unit) of the cost model. 0: 1, or as many as let the whole graph on the first device
  // take half a second if it has no unit.
  double time_scale = 0;
  // A run in which no op ends for this long, in addition to ten times what the longest takes, is given up, with a
  // report of who waits for what.
  Seconds stall_after = 30;
  // A run ends early with RunCancelled when this is set to true, from anywhere.
  std::stop_token stop = {};
};

// Devices that compute nothing: each is a thread that lets the modelled time of its ops pass, so that any number of
// devices of any speed run on any box, with real asynchrony. Transfers take their modelled time and memory is counted.
// Times vary by the machine's jitter, drawn anew for every run from the seed of the rules. A timeline is in the seconds
// (or units) of the cost model. Devices need exactly one slot.
class EmulatedExecutor final : public Executor, public ChangeableDevices {
 public:
  // Throws InputError if there is an obstacle.
  explicit EmulatedExecutor(const Problem& problem, const EmulatedOptions& options = {});

  // Says why the problem cannot be run; nothing if it can.
  static std::optional<std::string> obstacle(const Problem& problem) { return Runtime::obstacle(problem); }

  std::string_view name() const override { return "emulated"; }
  const Problem& problem() const override { return runtime_.problem(); }
  Timeline run(const Placement& placement) override;
  Seconds time(const Placement& placement) override { return runtime_.execute(placement); }

  double time_scale() const;

  bool answers(DeviceId device) override;
  ChangeableDevices* changeable() override { return this; }
  void slow_down(DeviceId device, double factor) override;
  void slow_down(DeviceId src, DeviceId dst, double factor) override;
  // A run that needs a device that is gone fails with DeviceGone a tenth of a second after it has come to it.
  void set_present(DeviceId device, bool present) override;

 private:
  std::shared_ptr<EmulatedDevices> devices_;
  Runtime runtime_;
};

}  // namespace doppler
