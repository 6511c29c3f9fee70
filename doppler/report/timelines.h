#pragma once

#include <string>
#include <vector>

#include "doppler/schedule.h"

namespace doppler {

struct NamedSchedule {
  std::string name;
  const Schedule* schedule = nullptr;
};

// Timelines as a picture for papers, one above the other on one time axis: a lane per slot of a device with a thin one
// for what arrives there, bars coloured by kind with a legend, the critical chain outlined. Bars narrower than a pixel
// are drawn together, so that the size of the picture is bounded by its width.
std::string timelines_to_svg(const std::vector<NamedSchedule>& timelines);

// A row per op and per transfer, with a heading, in seconds or the graph's unit.
std::string timeline_to_csv(const Schedule& schedule);

// For terminals: a line per slot with a letter per column of `columns`, that of the kind that took most of its time, a
// capital where the critical chain runs; '.' is idle. Kinds are explained below.
std::string timeline_to_text(const Schedule& schedule, std::size_t columns);

}  // namespace doppler
