#pragma once

#include <atomic>
#include <chrono>
#include <string>

#include "doppler/method.h"

namespace doppler {

// The first Ctrl-C sets this flag, the second ends the process.
const std::atomic<bool>* interrupt_flag();
void watch_for_interrupt();

// One line on standard error, "doppler: …".
void complain(const std::string& text);

// What a search is up to, on one line of standard error that overwrites itself; only on a terminal.
class ProgressLine {
 public:
  // `label` names the job, e.g. the graph; `unitless` as Graph::unitless().
  ProgressLine(bool quiet, std::string label, bool unitless);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void start(std::string_view method);
  void show(const Progress& progress);
  void show_text(std::string_view method, const std::string& state);

 private:
  using Clock = std::chrono::steady_clock;
  void draw(std::string_view method, const std::string& state);

  bool enabled_;
  std::string label_;
  bool unitless_;
  Clock::time_point start_, last_;
};

}  // namespace doppler
