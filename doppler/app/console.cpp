#include "doppler/app/console.h"

#include <signal.h>
#include <unistd.h>

#include <fmt/format.h>

#include "doppler/report/text.h"

namespace doppler {
namespace {

// The one mutable static of the program: a signal handler has no other way to be heard.
std::atomic<bool> interrupted = false;
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may only touch lock-free atomics");

void on_interrupt(int) { interrupted.store(true, std::memory_order_relaxed); }

}  // namespace

const std::atomic<bool>* interrupt_flag() { return &interrupted; }

void watch_for_interrupt() {
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;  // the second one has its usual effect
  ::sigaction(SIGINT, &action, nullptr);
}

void complain(const std::string& text) { fmt::print(stderr, "doppler: {}\n", text); }

ProgressLine::ProgressLine(bool quiet, std::string label, bool unitless)
    : enabled_(!quiet && ::isatty(STDERR_FILENO) == 1),
      label_(std::move(label)),
      unitless_(unitless),
      start_(Clock::now()) {}

ProgressLine::~ProgressLine() {
  if (enabled_) fmt::print(stderr, "\r\x1b[K");
}

void ProgressLine::start(std::string_view method) {
  start_ = Clock::now();
  draw(method, "");
}

void ProgressLine::show(const Progress& progress) {
  show_text(progress.method,
            fmt::format("best {} after {} evaluations", format_time(progress.best, unitless_), progress.evaluations));
}

void ProgressLine::show_text(std::string_view method, const std::string& state) {
  if (Clock::now() - last_ < std::chrono::milliseconds(100)) return;  // faster than anyone reads
  draw(method, ": " + state);
}

void ProgressLine::draw(std::string_view method, const std::string& state) {
  if (!enabled_) return;
  last_ = Clock::now();
  fmt::print(stderr, "\r\x1b[K{}: {}{} ({:.0f} s)", label_, method, state,
             std::chrono::duration<double>(last_ - start_).count());
}

}  // namespace doppler
