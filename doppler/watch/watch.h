#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>

namespace doppler {

// What a page shows while it is written: metrics.jsonl of a training's directory, or the log of a service.
struct WatchOptions {
  std::string file;        // of one JSON object per line; it need not be there yet
  std::string page;        // live_page() of report.h
  std::uint16_t port = 0;  // 0: any that is free
  std::stop_token stop;
  std::function<void(std::uint16_t port)> on_listening = nullptr;
};

// Serves the page on the loopback interface until it is told to stop: the page itself and, as server-sent events, every
// line of the file that is there and that comes. Answers only requests that were sent to this host by name, so that no
// page of another site can reach it through a browser, and knows no request that changes anything. A client that stops
// reading is let go after a few seconds. Returns false if the port is taken.
bool watch(const WatchOptions& options);

// The module doppler_watch is opened on demand, by this function: whoever reads the HTTP library compiles for long.
inline constexpr const char* kWatchSymbol = "doppler_watch";
using WatchFunction = bool (*)(const WatchOptions&);

}  // namespace doppler
