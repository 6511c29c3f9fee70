#pragma once

#include <chrono>
#include <stop_token>
#include <string>

#include "doppler/method.h"

namespace doppler {

// How the command ends; docs/json.md explains them.
enum ExitCode : int {
  kOk = 0,
  kBadInput = 2,
  kInfeasible = 3,
  kOurBug = 70,
  kOutOfMemory = 71,
  kInterrupted = 130,  // as shells show SIGINT
};

inline constexpr const char* kNothingToKeep = "interrupted; there is nothing to keep yet";

// Makes sure that descriptors 0 to 2 are taken, so that no file that is opened later becomes one of them, and that what
// cannot be written is an error and not a signal. To be called before anything is opened.
void settle_standard_streams();

// From here on SIGINT, SIGTERM and SIGHUP are interruptions, unless they are ignored, as under nohup. As long as there
// is nothing to keep, the first ends the process with kInterrupted; after keep_when_interrupted() it asks to stop, and
// whoever works does so soon and keeps what he has. The second ends the process by that signal. To be called before any
// thread is started.
void watch_for_interrupt();
void keep_when_interrupted();
// What asks whoever works to stop, and whether it has.
std::stop_token interruption();
bool interrupted();

// One line on standard error, "doppler: …". A standard error that cannot be written is no reason to give up.
void complain(const std::string& text) noexcept;

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
