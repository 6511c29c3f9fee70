#include "doppler/units.h"

#include <charconv>
#include <cmath>
#include <initializer_list>
#include <utility>

#include "doppler/base/error.h"

namespace doppler {
namespace {

using Suffix = std::pair<std::string_view, double>;

// A non-negative number with one of the suffixes; `required` completes the error text.
double parse_scaled(std::string_view text, std::string_view where, std::initializer_list<Suffix> suffixes,
                    std::string_view required) {
  double value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status == std::errc() && std::isfinite(value) && value >= 0) {
    const std::string_view suffix = text.substr(static_cast<std::size_t>(end - text.data()));
    for (const auto& [name, scale] : suffixes)
      if (suffix == name) return value * scale;
  }
  throw InputError(fmt::format("{}: found '{}'; required {}", where, text, required));
}

}  // namespace

Seconds parse_duration(std::string_view text, std::string_view where) {
  return parse_scaled(text, where, {{"", 1.0}, {"s", 1.0}, {"ms", 1e-3}, {"m", 60.0}, {"min", 60.0}, {"h", 3600.0}},
                      "a duration such as 500ms, 30s, 2m or 1h");
}

Bytes parse_bytes(std::string_view text, std::string_view where) {
  const double value = parse_scaled(text, where,
                                    {{"", 1.0},
                                     {"B", 1.0},
                                     {"kB", 1e3},
                                     {"MB", 1e6},
                                     {"GB", 1e9},
                                     {"KiB", 1024.0},
                                     {"MiB", 1048576.0},
                                     {"GiB", 1073741824.0}},
                                    "a size such as 600MB or 16GiB");
  if (value > 1e18) throw InputError(fmt::format("{}: found '{}'; required at most 1e18 bytes", where, text));
  return static_cast<Bytes>(value);
}

double parse_share(std::string_view text, std::string_view where, double most) {
  const double share = parse_scaled(text, where, {{"", 1.0}, {"%", 0.01}}, "a share such as 10% or 0.1");
  if (!(share < most))
    throw InputError(fmt::format("{}: found '{}'; required less than {:.0f}%", where, text, 100 * most));
  return share;
}

std::string format_seconds(Seconds value) {
  if (value == 0) return "0 s";
  const double magnitude = std::abs(value);
  if (magnitude < 1e-3) return fmt::format("{:.4g} µs", value * 1e6);
  if (magnitude < 1.0) return fmt::format("{:.4g} ms", value * 1e3);
  return fmt::format("{:.4g} s", value);
}

std::string format_bytes(Bytes value) {
  constexpr std::string_view kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double scaled = static_cast<double>(value);
  std::size_t unit = 0;
  while (scaled >= 1024.0 && unit + 1 < std::size(kUnits)) scaled /= 1024.0, ++unit;
  return fmt::format("{:.4g} {}", scaled, kUnits[unit]);
}

}  // namespace doppler
