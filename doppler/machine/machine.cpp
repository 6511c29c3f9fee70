#include "doppler/machine/machine.h"

#include "doppler/base/error.h"

namespace doppler {

Machine::Machine(std::string name, std::vector<Device> devices, std::vector<Link> links)
    : name_(std::move(name)), devices_(std::move(devices)), links_(std::move(links)) {
  if (devices_.empty())
    throw InputError(fmt::format("machine '{}': no devices; required at least one", name_));
  DOPPLER_CHECK(links_.size() == devices_.size() * devices_.size(), "{} links for {} devices", links_.size(),
                devices_.size());
}

Machine uniform_machine(DeviceId devices) {
  std::vector<Device> list;
  for (DeviceId id = 0; id < devices; ++id) {
    Device device;
    device.name = fmt::format("device{}", id);
    device.type = "uniform";
    list.push_back(std::move(device));
  }
  Link link;
  link.bytes_per_second = gigabytes_per_second(1);
  return Machine(fmt::format("uniform:{}", devices), std::move(list),
                 std::vector<Link>(devices * devices, link));
}

}  // namespace doppler
