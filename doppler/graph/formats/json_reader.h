#pragma once

#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "doppler/units.h"

// Internal to the readers of graph, machine and placement files: what they share, and the only header here
// that shows the library.
namespace doppler::formats {

using Json = nlohmann::json;

// An array inside the file, by the keys that lead to it ("workflow.tasks"), and what to do with each element.
struct JsonSection {
  std::string_view path;
  std::function<void(std::size_t index, const Json& element)> on_element;
};

// Parses `content`. The elements of the sections are handed over one at a time and dropped, so that a graph
// of a million ops never exists as a JSON tree; returns the rest, with empty arrays in their place. Throws
// InputError if the text is not JSON, nests deeper than any graph needs, or repeats a key within one object.
Json parse_json(const std::string& where, std::string_view content, std::span<const JsonSection> sections);

// At most a few words of any JSON value, for error texts.
std::string shown(const Json& value);

// The fields of one object. `where` starts every error text: "file: op 3".
class JsonFields {
 public:
  JsonFields(std::string where,
             const Json& object);  // throws InputError unless it is an object; keeps a reference

  const std::string& where() const { return where_; }
  const Json* find(const char* key) const;  // null if there is none
  [[noreturn]] void fail(const char* key, std::string_view required) const;
  void refuse_other_keys(std::initializer_list<std::string_view> known) const;

  // Throw InputError if the field is missing or of another type.
  const std::string& string(const char* key) const;
  double number(const char* key) const;
  Bytes bytes(const char* key) const;                         // a whole number, also as "1024.0" or "1e9"
  std::uint32_t index(const char* key) const;                 // whether it is in range is for the caller to say
  std::vector<std::uint32_t> indices(const char* key) const;  // none if missing
  std::vector<std::string> strings(const char* key) const;    // none if missing

  std::string string_or(const char* key, std::string_view fallback) const;
  double number_or(const char* key, double fallback) const { return find(key) ? number(key) : fallback; }
  Bytes bytes_or(const char* key, Bytes fallback) const { return find(key) ? bytes(key) : fallback; }

 private:
  std::string where_;
  const Json& object_;
};

}  // namespace doppler::formats
