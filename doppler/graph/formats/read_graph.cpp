#include "doppler/graph/formats/read_graph.h"

#include <array>
#include <optional>
#include <utility>

#include "doppler/base/error.h"
#include "doppler/base/file.h"
#include "doppler/graph/formats/dnn_partitioning.h"
#include "doppler/graph/formats/native_json.h"
#include "doppler/graph/formats/published_txt.h"
#include "doppler/graph/formats/stg.h"
#include "doppler/graph/formats/wfcommons.h"

namespace doppler {
namespace {

enum class Format { native, published, stg, wfcommons, dnn_partitioning };

constexpr std::string_view kWhitespace = " \t\r\n";
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr std::string_view kRequired =
    "a graph as native JSON, published .txt, STG, WfCommons JSON or dnn-partitioning JSON, an ONNX model, or a program "
    "(.ein) (docs/formats.md)";

// Top-level keys that only one format has.
constexpr std::array<std::pair<std::string_view, Format>, 10> kDecisiveKeys = {{
    {"format", Format::native},
    {"ops", Format::native},
    {"tensors", Format::native},
    {"schemaVersion", Format::wfcommons},
    {"workflow", Format::wfcommons},
    {"nodes", Format::dnn_partitioning},
    {"edges", Format::dnn_partitioning},
    {"maxFPGAs", Format::dnn_partitioning},
    {"maxSizePerFPGA", Format::dnn_partitioning},
    {"maxCPUs", Format::dnn_partitioning},
}};

// The closing quote of the string that starts at `open`, or the end of the text.
std::size_t end_of_string(std::string_view text, std::size_t open) {
  std::size_t i = open + 1;
  while (i < text.size() && text[i] != '"') i += text[i] == '\\' ? 2 : 1;
  return std::min(i, text.size());
}

// The first decisive key of the top-level object. Only strings and brackets are looked at: whether the text
// is JSON at all is for the reader to say, in its own words.
std::optional<Format> json_format(std::string_view text) {
  std::size_t depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '{' || c == '[') ++depth;
    if ((c == '}' || c == ']') && --depth == 0) return std::nullopt;
    if (c != '"') continue;
    const std::size_t end = end_of_string(text, i);
    const std::string_view string = text.substr(i + 1, end - i - 1);
    i = end;
    if (depth != 1) continue;
    const std::size_t next = text.find_first_not_of(kWhitespace, end + 1);
    if (next == std::string_view::npos || text[next] != ':') continue;
    for (const auto& [key, format] : kDecisiveKeys)
      if (string == key) return format;
  }
  return std::nullopt;
}

// Both text formats start with a number; only the published one separates numbers by commas.
std::optional<Format> text_format(std::string_view text) {
  if (text.front() < '0' || text.front() > '9') return std::nullopt;
  return text.substr(0, text.find('#')).find(',') != std::string_view::npos ? Format::published : Format::stg;
}

}  // namespace

LoadedGraph parse_graph(const std::string& where, std::string_view content, const ReadOptions& options) {
  if (content.starts_with(kByteOrderMark)) content.remove_prefix(kByteOrderMark.size());
  const std::size_t start = content.find_first_not_of(kWhitespace);
  if (start == std::string_view::npos) throw InputError(fmt::format("{}: empty; required {}", where, kRequired));
  const std::string_view text = content.substr(start);
  const std::optional<Format> format = text.front() == '{' ? json_format(text) : text_format(text);
  if (!format) throw InputError(fmt::format("{}: unknown format; required {}", where, kRequired));
  // The readers get the whole content, so that the line numbers in their errors are right.
  switch (*format) {
    case Format::native:
      return parse_native_json(where, content);
    case Format::published:
      return parse_published_txt(where, content, options);
    case Format::stg:
      return parse_stg(where, content);
    case Format::wfcommons:
      return parse_wfcommons(where, content);
    case Format::dnn_partitioning:
      return parse_dnn_partitioning(where, content);
  }
  throw InternalError("unknown graph format");
}

LoadedGraph read_graph(const std::string& path, const ReadOptions& options) {
  return parse_graph(path, read_file(path), options);
}

}  // namespace doppler
