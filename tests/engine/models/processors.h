#pragma once

#include <vector>

#include <fmt/format.h>

#include "doppler/machine.h"

namespace doppler::test {

// Cores of some speed: times say nothing here.
inline Machine processors(DeviceId count, Links links = Links::free) {
  std::vector<Device> devices(count);
  for (DeviceId id = 0; id < count; ++id) {
    devices[id].name = fmt::format("cpu{}", id);
    devices[id].type = "cpu";
    devices[id].rates = {{"*", "*", 1e11}};
    devices[id].memory_bytes_per_second = 1e10;
  }
  // A hand-over takes no time worth speaking of, so that small models are cut, too.
  const Link link = links == Links::shared ? Link{1e-9, 1e13} : Link{1e-5, 1e10};
  return Machine("cores", devices, std::vector<Link>(count * count, link), links);
}

}  // namespace doppler::test
