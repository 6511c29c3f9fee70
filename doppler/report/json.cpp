#include <algorithm>
#include <array>
#include <concepts>
#include <set>

#include <nlohmann/json.hpp>

#include "doppler/base/error.h"
#include "doppler/base/parse_enum.h"
#include "doppler/base/terminal_text.h"
#include "doppler/graph/formats/json_reader.h"
#include "doppler/report/check_schedule.h"
#include "doppler/report/clean_names.h"
#include "doppler/report/result_fields.h"
#include "doppler/results.h"

// Every result has one list of fields, fields(archive, result), that serves both the writer and the reader, so that
// what is written can be read, and the cleaner of names. A field is archive("key", value); an optional one that is
// empty is left out, or null where archive.or_null() says so. What follows from other fields is archive.derived():
// written for scripts, not read.
namespace doppler {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr int kVersion = 1;
// The kinds are in the order of the alternatives of AnyResult.
constexpr std::array<std::string_view, 15> kKinds = {"simulation", "place", "comparison", "graph",    "plan",
                                                     "rewrite",    "run",   "service",    "validity", "calibration",
                                                     "training",   "why",   "diff",       "machines", "split"};
static_assert(kKinds.size() == std::variant_size_v<AnyResult>);

constexpr std::array kBoundKinds = {LowerBound::Kind::work,          LowerBound::Kind::critical_path,
                                    LowerBound::Kind::communication, LowerBound::Kind::interval,
                                    LowerBound::Kind::search,        LowerBound::Kind::contradiction};

// ---- writing ----

class Writer {
 public:
  explicit Writer(ordered_json& to) : to_(to) {}

  template <typename T>
  void operator()(const char* key, const T& value) {
    to_[key] = written(value);
  }
  template <typename T>
  void operator()(const char* key, const std::optional<T>& value) {
    if (value) to_[key] = written(*value);
  }
  template <typename T>
  void or_null(const char* key, const std::optional<T>& value) {
    to_[key] = value ? written(*value) : ordered_json(nullptr);
  }
  void or_absent(const char* key, const std::string& text) {
    if (!text.empty()) to_[key] = text;
  }
  // Older versions did not write it.
  template <typename T>
  void newer(const char* key, const T& value) {
    to_[key] = written(value);
  }
  // Null if there is a reason for there being none.
  void unless(const std::string& reason, const char* key, double value) {
    to_[key] = reason.empty() ? ordered_json(value) : ordered_json(nullptr);
  }
  void unit(const char* key, bool unitless) { to_[key] = unitless ? "graph" : "s"; }
  void derived(const char* key, double value) { to_[key] = value; }
  void derived(const char* key, Bytes value) { to_[key] = value; }
  void derived(const char* key, const char* text) { to_[key] = text; }
  void derived(const char* key, const std::optional<double>& value) { or_null(key, value); }
  template <typename T>
  bool section(const char*, const std::optional<T>& value) const {
    return value.has_value();
  }
  void placement(const char* key, const Placement& placement, const Provenance& made) {
    to_[key] = ordered_json::parse(placement_to_json(placement, made));
  }

 private:
  template <typename T>
  static ordered_json written(const T& value) {
    if constexpr (std::is_arithmetic_v<T> || std::same_as<T, std::string>) {
      return value;
    } else if constexpr (std::is_enum_v<T>) {
      return to_string(value);
    } else {
      ordered_json object = ordered_json::object();
      Writer writer(object);
      fields(writer, value);
      return object;
    }
  }
  template <typename T>
  static ordered_json written(const std::vector<T>& values) {
    ordered_json array = ordered_json::array();
    for (const T& value : values) array.push_back(written(value));
    return array;
  }

  ordered_json& to_;
};

// ---- reading ----

class Reader {
 public:
  Reader(std::string where, const json& from) : where_(std::move(where)), from_(from) {
    if (!from.is_object()) fail("", from, "an object");
  }

  template <typename T>
  void operator()(const char* key, T& value) {
    read(key, required(key), value);
  }
  template <typename T>
  void operator()(const char* key, std::optional<T>& value) {
    if (const json* found = find(key)) read(key, *found, value.emplace());
  }
  template <typename T>
  void or_null(const char* key, std::optional<T>& value) {
    if (const json& found = required(key); !found.is_null()) read(key, found, value.emplace());
  }
  void or_absent(const char* key, std::string& text) {
    if (const json* found = find(key)) read(key, *found, text);
  }
  template <typename T>
  void newer(const char* key, T& value) {
    if (const json* found = find(key)) read(key, *found, value);
  }
  void unless(const std::string&, const char* key, double& value) {
    if (const json& found = required(key); !found.is_null()) read(key, found, value);
  }
  void unit(const char* key, bool& unitless) {
    std::string text;
    read(key, required(key), text);
    if (text != "s" && text != "graph") fail(key, required(key), "s or graph");
    unitless = text == "graph";
  }
  template <typename T>
  void derived(const char* key, const T&) {
    find(key);
  }
  template <typename T>
  bool section(const char* key, std::optional<T>& value) {
    if (!from_.contains(key)) return false;
    value.emplace();
    return true;
  }
  void placement(const char* key, Placement& placement, Provenance& made) {
    PlacementFile file = parse_placement(where_ + ": '" + key + "'", required(key).dump());
    placement = std::move(file.placement);
    made = std::move(file.made);
  }

  // What nobody asked for is of another version, or no result.
  void finish() const {
    for (const auto& [key, value] : from_.items())
      if (!seen_.contains(key))
        throw InputError(fmt::format("{}: found '{}'; required a result of this version of doppler", where_, key));
  }
  const json* find(const char* key) {
    seen_.insert(key);
    const auto found = from_.find(key);
    return found == from_.end() ? nullptr : &*found;
  }

 private:
  const json& required(const char* key) {
    const json* found = find(key);
    if (found == nullptr) throw InputError(fmt::format("{}: no '{}'; required a whole result", where_, key));
    return *found;
  }
  [[noreturn]] void fail(const char* key, const json& found, const char* required) const {
    throw InputError(fmt::format("{}: '{}': found {}; required {}", where_, key, formats::shown(found), required));
  }
  template <typename T>
  void read(const char* key, const json& from, T& value) {
    if constexpr (std::same_as<T, bool>) {
      if (!from.is_boolean()) fail(key, from, "true or false");
      value = from.get<bool>();
    } else if constexpr (std::is_floating_point_v<T>) {
      if (!from.is_number()) fail(key, from, "a number");
      value = from.get<T>();
    } else if constexpr (std::is_arithmetic_v<T>) {
      if (!from.is_number_unsigned()) fail(key, from, "a whole number");
      value = from.get<T>();
    } else if constexpr (std::same_as<T, std::string>) {
      if (!from.is_string()) fail(key, from, "a text");
      value = from.get<std::string>();
    } else if constexpr (std::same_as<T, LowerBound::Kind>) {
      value = parse_enum(text_of(key, from), where_ + ": '" + key + "'", kBoundKinds);
    } else if constexpr (std::is_enum_v<T>) {
      value = parse_enum(
          text_of(key, from), where_ + ": '" + key + "'",
          std::array{GraphFacts::Measure::seconds, GraphFacts::Measure::unitless, GraphFacts::Measure::flops});
    } else {
      Reader reader(where_ + ": '" + key + "'", from);
      fields(reader, value);
      reader.finish();
    }
  }
  template <typename T>
  void read(const char* key, const json& from, std::vector<T>& values) {
    if (!from.is_array()) fail(key, from, "an array");
    for (const json& element : from) read(key, element, values.emplace_back());
  }
  std::string text_of(const char* key, const json& from) {
    std::string text;
    read(key, from, text);
    return text;
  }

  std::string where_;
  const json& from_;
  std::set<std::string> seen_ = {"result", "version"};
};

// ---- cleaning ----

class Cleaner {
 public:
  template <typename T>
  void operator()(const char*, T& value) {
    clean(value);
  }
  template <typename T>
  void or_null(const char*, std::optional<T>& value) {
    clean(value);
  }
  void or_absent(const char*, std::string& text) { clean(text); }
  template <typename T>
  void newer(const char*, T& value) {
    clean(value);
  }
  void unless(const std::string&, const char*, double) {}
  void unit(const char*, bool) {}
  template <typename T>
  void derived(const char*, const T&) {}
  template <typename T>
  bool section(const char*, const std::optional<T>& value) const {
    return value.has_value();
  }
  void placement(const char*, const Placement&, const Provenance&) {}

 private:
  template <typename T>
  void clean(T& value) {
    if constexpr (std::same_as<T, std::string>)
      value = for_terminal(value, kLongestName);
    else if constexpr (!std::is_arithmetic_v<T> && !std::is_enum_v<T>)
      fields(*this, value);
  }
  template <typename T>
  void clean(std::optional<T>& value) {
    if (value) clean(*value);
  }
  template <typename T>
  void clean(std::vector<T>& values) {
    for (T& value : values) clean(value);
  }
};

template <std::size_t... I>
AnyResult read_kind(std::size_t kind, const std::string& where, const json& file, std::index_sequence<I...>) {
  AnyResult result;
  const auto attempt = [&]<std::size_t K>(std::integral_constant<std::size_t, K>) {
    if (kind != K) return;
    Reader reader(where, file);
    fields(reader, result.emplace<K>());
    reader.finish();
  };
  (attempt(std::integral_constant<std::size_t, I>()), ...);
  return result;
}

}  // namespace

void clean_names(AnyResult& result) {
  std::visit(
      [](auto& value) {
        Cleaner cleaner;
        fields(cleaner, value);
      },
      result);
}

std::string to_json(const AnyResult& result) {
  ordered_json file = {{"result", kKinds[result.index()]}, {"version", kVersion}};
  std::visit(
      [&](const auto& value) {
        Writer writer(file);
        fields(writer, value);
      },
      result);
  // The columns of a schedule are for programs, and long. Names come from files and paths, which need not be UTF-8.
  const int indent = file.contains("schedule") ? -1 : 2;
  return file.dump(indent, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

AnyResult parse_result(const std::string& where, std::string_view text) {
  const json file = formats::parse_json(where, text, {});
  const json kind = file.is_object() ? file.value("result", json()) : json();
  const auto found = std::find(kKinds.begin(), kKinds.end(), kind.is_string() ? kind.get<std::string>() : "");
  if (found == kKinds.end())
    throw InputError(fmt::format("{}: no \"result\"; required what a verb wrote with --json", where));
  if (file.value("version", json()) != kVersion)
    throw InputError(fmt::format("{}: version {}; required {}", where, file.value("version", json()).dump(), kVersion));
  AnyResult result = read_kind(static_cast<std::size_t>(found - kKinds.begin()), where, file,
                               std::make_index_sequence<std::variant_size_v<AnyResult>>());
  check_schedules(where, result);
  return result;
}

}  // namespace doppler
