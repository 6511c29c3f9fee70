#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "doppler/base/version.h"
#include "doppler/report.h"
#include "doppler/report/page_bundle.h"

namespace doppler {
namespace {

std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// JSON inside of a script element must not end it: the only sign that could is written as a number.
std::string embedded(std::string_view data) {
  std::string text;
  text.reserve(data.size());
  for (const char sign : data) sign == '<' ? text += "\\u003c" : text += sign;
  return text;
}

std::string escaped(std::string_view text) {
  std::string result;
  for (const char sign : text) switch (sign) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      default:
        result += sign;
    }
  return result;
}

// A result's own JSON with what the page wants to know beside it.
std::string entry(const NamedResult& named) {
  std::string text = to_json(named.result);
  text.erase(text.find_last_of('}'));
  text += fmt::format(",\"name\":{}", quoted(named.name));
  if (!named.metrics.empty()) {
    std::string objects = named.metrics.substr(0, named.metrics.find_last_not_of('\n') + 1);
    std::replace(objects.begin(), objects.end(), '\n', ',');  // JSON has no other line ends outside of texts
    text += fmt::format(",\"metrics\":[{}]", objects);
  }
  return text + "}";
}

constexpr std::string_view kHead =
    "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";

std::string page(const PageBundle& bundle, const std::string& title, const std::string& report, bool live) {
  return fmt::format(
      "{}<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src {}; style-src {}; "
      "img-src data: blob:; connect-src {}; base-uri 'none'; form-action 'none'\">\n"
      "<title>{}</title>\n<style>{}</style>\n</head>\n<body>\n<main id=\"main\"></main>\n"
      "<noscript>This page draws itself by a script, which this browser does not run.</noscript>\n"
      "<script type=\"application/json\" id=\"report\">{}</script>\n<script>{}</script>\n</body>\n</html>\n",
      kHead, bundle.script_hash, bundle.style_hash, live ? "'self'" : "'none'", escaped(title), bundle.style,
      embedded(report), bundle.script);
}

// Without a script: the text of every result, and its picture where it has one.
std::string plain_page(const std::string& title, const std::vector<NamedResult>& results) {
  std::string body;
  for (const NamedResult& named : results) {
    body += fmt::format("<h2>{}</h2>\n<pre>{}</pre>\n", escaped(named.name), escaped(to_text(named.result)));
    if (has_picture(named)) body += picture_svg({named});
  }
  return fmt::format(
      "{}<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
      "<title>{}</title>\n</head>\n<body>\n<h1>{}</h1>\n{}<p>This build of doppler has no pages that move: it was made "
      "without npm.</p>\n</body>\n</html>\n",
      kHead, escaped(title), escaped(title), body);
}

}  // namespace

std::string report_page(const std::string& title, const std::vector<NamedResult>& results) {
  const PageBundle* bundle = page_bundle();
  if (bundle == nullptr) return plain_page(title, results);
  std::string entries;
  for (const NamedResult& named : results) entries += (entries.empty() ? "" : ",\n") + entry(named);
  return page(*bundle, title,
              fmt::format("{{\"title\":{},\"doppler\":{},\"results\":[{}]}}", quoted(title),
                          quoted(std::string(version())), entries),
              false);
}

std::string live_page(const std::string& title) {
  const PageBundle* bundle = page_bundle();
  if (bundle == nullptr) return plain_page(title, {});
  return page(*bundle, title,
              fmt::format("{{\"title\":{},\"doppler\":{},\"results\":[],\"live\":true}}", quoted(title),
                          quoted(std::string(version()))),
              true);
}

}  // namespace doppler
