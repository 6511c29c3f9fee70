#include "doppler/engine/emulated/emulated_executor.h"

#include "doppler/engine/emulated/emulated_devices.h"
#include "doppler/objective.h"

namespace doppler {
namespace {

// A run of a graph without a unit takes so long on one device: long enough to be timed, short enough to be repeated.
constexpr Seconds kUnitlessRun = 0.5;

double chosen_time_scale(const Problem& problem, double wanted) {
  if (wanted > 0) return wanted;
  if (!problem.graph().unitless()) return 1;
  const Placement one{std::vector<DeviceId>(problem.op_count(), 0), {}, {}};
  const Seconds makespan = ExactObjective(problem).value(one);
  return makespan > 0 ? kUnitlessRun / makespan : 1;
}

}  // namespace

EmulatedExecutor::EmulatedExecutor(const Problem& problem, const EmulatedOptions& options)
    : devices_(std::make_shared<EmulatedDevices>(problem, chosen_time_scale(problem, options.time_scale))),
      runtime_(problem, devices_, {false, options.stall_after, options.stop}) {}

Timeline EmulatedExecutor::run(const Placement& placement) {
  runtime_.execute(placement);
  return runtime_.timeline();
}

double EmulatedExecutor::time_scale() const { return devices_->time_scale(); }
bool EmulatedExecutor::answers(DeviceId device) { return devices_->present(device); }
void EmulatedExecutor::slow_down(DeviceId device, double factor) { devices_->slow_down(device, factor); }
void EmulatedExecutor::slow_down(DeviceId src, DeviceId dst, double factor) { devices_->slow_down(src, dst, factor); }
void EmulatedExecutor::set_present(DeviceId device, bool present) { devices_->set_present(device, present); }

}  // namespace doppler
