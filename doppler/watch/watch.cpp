#include "doppler/watch/watch.h"

#include <chrono>
#include <httplib.h>
#include <thread>

#include "doppler/watch/line_tail.h"

namespace doppler {
namespace {

constexpr auto kPoll = std::chrono::milliseconds(100);
constexpr auto kBeat =
    std::chrono::seconds(2);  // a comment is sent this often, by which a client that has gone is noticed
constexpr time_t kWriteSeconds = 5;

// One client's events, from the first line on.
class Events {
 public:
  explicit Events(const WatchOptions& options) : tail_(options.file), stop_(options.stop) {}

  // Waits for lines and sends them; false if the client has gone.
  bool send(httplib::DataSink& sink) {
    std::string text;
    for (auto waited = std::chrono::milliseconds(0); text.empty() && !stop_.stop_requested(); waited += kPoll) {
      for (const std::string& line : tail_.next())
        if (!line.empty()) text += "event: line\ndata: " + line + "\n\n";
      if (!text.empty()) break;
      if (waited >= kBeat)
        text = ": waiting\n\n";
      else
        std::this_thread::sleep_for(kPoll);
    }
    if (stop_.stop_requested()) text += "event: end\ndata: {}\n\n";
    if (!sink.write(text.data(), text.size())) return false;
    if (stop_.stop_requested()) sink.done();
    return true;
  }

 private:
  LineTail tail_;
  std::stop_token stop_;
};

bool is_this_host(const std::string& host, int port) {
  for (const char* name : {"localhost", "127.0.0.1"})
    if (host == std::string(name) + ":" + std::to_string(port)) return true;
  return false;
}

}  // namespace

bool watch(const WatchOptions& options) {
  httplib::Server server;
  int port = options.port;
  server.set_write_timeout(kWriteSeconds, 0);
  server.set_keep_alive_max_count(1);
  server.set_pre_routing_handler([&](const httplib::Request& request, httplib::Response& response) {
    if (is_this_host(request.get_header_value("Host"), port)) return httplib::Server::HandlerResponse::Unhandled;
    response.status = 403;
    response.set_content("this page is for this host alone\n", "text/plain");
    return httplib::Server::HandlerResponse::Handled;
  });
  server.Get("/", [&](const httplib::Request&, httplib::Response& response) {
    response.set_header("X-Content-Type-Options", "nosniff");
    response.set_content(options.page, "text/html; charset=utf-8");
  });
  server.Get("/events", [&](const httplib::Request&, httplib::Response& response) {
    response.set_header("Cache-Control", "no-store");
    response.set_chunked_content_provider(
        "text/event-stream", [events = std::make_shared<Events>(options)](std::size_t, httplib::DataSink& sink) {
          return events->send(sink);
        });
  });
  if (port == 0) {
    port = server.bind_to_any_port("127.0.0.1");
  } else if (!server.bind_to_port("127.0.0.1", port)) {
    port = -1;
  }
  if (port < 0) return false;
  if (options.on_listening) options.on_listening(static_cast<std::uint16_t>(port));
  const std::stop_callback stopped(options.stop, [&] { server.stop(); });
  server.listen_after_bind();
  return true;
}

}  // namespace doppler

// What the command opens the module by.
extern "C" bool doppler_watch(const doppler::WatchOptions& options) { return doppler::watch(options); }
