#include "doppler/app/console.h"

#include <atomic>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <system_error>
#include <unistd.h>

#include <fmt/format.h>

#include "doppler/base/file.h"
#include "doppler/base/terminal_text.h"
#include "doppler/report/text.h"

namespace doppler {
namespace {

// The mutable statics of the program: signals have no other way to be heard. The source is never destroyed, because the
// thread that waits for signals outlives main().
std::stop_source& stop_source = *new std::stop_source;
std::atomic<bool> keeping = false;

constexpr std::size_t kLongestLine = 4000, kLongestProgress = 200;

sigset_t interruptions() {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction action {};
    ::sigaction(number, nullptr, &action);
    if (action.sa_handler != SIG_IGN) ::sigaddset(&set, number);
  }
  return set;
}

[[noreturn]] void end_by(int number, const sigset_t& blocked) {
  ::signal(number, SIG_DFL);
  ::pthread_sigmask(SIG_UNBLOCK, &blocked, nullptr);
  ::raise(number);
  ::_exit(kInterrupted);
}

// Waits for interruptions for as long as the process lives. Every thread blocks them, so that they come here and
// nowhere else: a handler would be replaced by METIS's, which jumps into a partitioning that another thread may be at.
void* wait_for_interruptions(void*) {
  const sigset_t set = interruptions();
  for (int number = 0;;) {
    if (::sigwait(&set, &number) != 0) continue;
    if (!stop_source.request_stop()) end_by(number, set);  // It is the second.
    if (keeping.load()) continue;
    complain(kNothingToKeep);
    ::_exit(kInterrupted);
  }
}

}  // namespace

void settle_standard_streams() {
  // The wrong way round, so that reading or writing what was closed still fails.
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(descriptor, F_GETFD) < 0) ::open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  for (const int number : {SIGPIPE, SIGXFSZ}) ::signal(number, SIG_IGN);
}

std::stop_token interruption() { return stop_source.get_token(); }
bool interrupted() { return stop_source.stop_requested(); }
void keep_when_interrupted() { keeping.store(true); }

void watch_for_interrupt() {
  const sigset_t set = interruptions();
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  constexpr std::size_t kStack = 256 << 10;  // the usual eight megabytes are much where address space is scarce
  pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  ::pthread_attr_setstacksize(&attributes, kStack);
  ::pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_t thread;
  const int error = ::pthread_create(&thread, &attributes, wait_for_interruptions, nullptr);
  ::pthread_attr_destroy(&attributes);
  if (error != 0) throw std::system_error(error, std::generic_category(), "signals");
}

void complain(const std::string& text) noexcept {
  try {
    try_write(STDERR_FILENO, "doppler: " + for_terminal(text, kLongestLine) + "\n");
  } catch (const std::bad_alloc&) {
    try_write(STDERR_FILENO, "doppler: out of memory\n");
  }
}

ProgressLine::ProgressLine(bool quiet, std::string label, bool unitless)
    : enabled_(!quiet && ::isatty(STDERR_FILENO) == 1),
      label_(std::move(label)),
      unitless_(unitless),
      start_(Clock::now()) {}

ProgressLine::~ProgressLine() {
  if (enabled_) try_write(STDERR_FILENO, "\r\x1b[K");
}

void ProgressLine::start(std::string_view method) {
  start_ = Clock::now();
  draw(method, "");
}

void ProgressLine::show(const Progress& progress) {
  if (progress.evaluations == 0) return start(progress.method);
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
  const std::string line =
      fmt::format("{}: {}{} ({:.0f} s)", label_, method, state, std::chrono::duration<double>(last_ - start_).count());
  try_write(STDERR_FILENO, "\r\x1b[K" + for_terminal(line, kLongestProgress));
}

}  // namespace doppler
