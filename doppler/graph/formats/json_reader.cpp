#include "doppler/graph/formats/json_reader.h"

#include <algorithm>
#include <cmath>

#include "doppler/base/error.h"
#include "doppler/graph.h"

namespace doppler::formats {
namespace {

// No graph format nests deeper than ten. The limit keeps everything recursive in the library (copying,
// printing) within the stack, whatever the file holds.
constexpr std::size_t kDeepest = 64;

// The library's text without its code in brackets and without the input that it quotes, which may be long.
std::string brief(std::string text) {
  constexpr std::size_t kLongest = 160;
  const std::size_t code = text.find("] ");
  if (code != std::string::npos) text.erase(0, code + 2);
  return text.substr(0, std::min(text.find("; last read"), kLongest));
}

// Builds the tree from the library's events, hands out the elements of sections as they are completed and
// drops them. Not the library's own filter (parser_callback_t): that searches a whole array after each of its
// elements.
class SectionParser {
 public:
  SectionParser(const std::string& where, std::span<const JsonSection> sections) : where_(where), sections_(sections) {}

  Json take() { return std::move(root_); }

  // What the library calls.
  bool null() { return scalar(Json()); }
  bool boolean(bool value) { return scalar(Json(value)); }
  bool number_integer(std::int64_t value) { return scalar(Json(value)); }
  bool number_unsigned(std::uint64_t value) { return scalar(Json(value)); }
  bool number_float(double value, const std::string&) { return scalar(Json(value)); }
  bool string(std::string& value) { return scalar(Json(std::move(value))); }
  bool binary(Json::binary_t&) { throw InternalError("binary data in JSON text"); }
  bool start_object(std::size_t) { return open(Json::object(), nullptr); }
  bool key(std::string& key) {
    open_.back().key = std::move(key);
    return true;
  }
  bool end_object() { return close(); }
  bool start_array(std::size_t) { return open(Json::array(), find_section()); }
  bool end_array() { return close(); }
  bool parse_error(std::size_t, const std::string&, const Json::exception& error) {
    constexpr int kNumberOverflow = 406;
    if (error.id == kNumberOverflow)
      throw InputError(fmt::format("{}: {}; required numbers that a double can hold", where_, brief(error.what())));
    throw InputError(fmt::format("{}: not JSON ({}); required a complete JSON file", where_, brief(error.what())));
  }

 private:
  // An object or array that is not complete yet. Only the innermost one grows, so the pointers stay valid.
  struct Open {
    Json* value;
    const JsonSection* section;  // null: an ordinary value
    std::string key = {};        // of an object: the last one
    std::size_t elements = 0;    // of a section: how many were handed out
  };

  // The section whose path are the keys of the open objects.
  const JsonSection* find_section() const {
    for (const JsonSection& section : sections_) {
      std::string_view rest = section.path;
      bool matches = true;
      for (const Open& open : open_) {
        const std::string_view key = rest.substr(0, rest.find('.'));
        matches = matches && open.value->is_object() && !rest.empty() && open.key == key;
        rest.remove_prefix(std::min(key.size() + 1, rest.size()));
      }
      if (matches && rest.empty()) return &section;
    }
    return nullptr;
  }

  Json* insert(Json value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    Open& parent = open_.back();
    if (parent.value->is_array()) return &parent.value->emplace_back(std::move(value));
    const auto [entry, added] = parent.value->get_ref<Json::object_t&>().emplace(parent.key, std::move(value));
    if (!added)
      throw InputError(
          fmt::format("{}: key {} twice in one object; required each key once", where_, shown(parent.key)));
    return &entry->second;
  }

  bool open(Json value, const JsonSection* section) {
    if (open_.size() == kDeepest)
      throw InputError(fmt::format("{}: nested more than {} levels deep; required fewer", where_, kDeepest));
    open_.push_back({insert(std::move(value)), section});
    return true;
  }

  bool scalar(Json value) {
    insert(std::move(value));
    return complete();
  }

  bool close() {
    open_.pop_back();
    return complete();
  }

  bool complete() {
    if (open_.empty() || open_.back().section == nullptr) return true;
    Open& parent = open_.back();
    auto& elements = parent.value->get_ref<Json::array_t&>();
    parent.section->on_element(parent.elements++, elements.back());
    elements.pop_back();
    return true;
  }

  const std::string& where_;
  std::span<const JsonSection> sections_;
  Json root_;
  std::vector<Open> open_;
};

bool is_index(const Json& value) {
  return value.is_number_unsigned() && value.get<std::uint64_t>() < std::numeric_limits<std::uint32_t>::max();
}

}  // namespace

Json parse_json(const std::string& where, std::string_view content, std::span<const JsonSection> sections) {
  SectionParser parser(where, sections);
  Json::sax_parse(content, &parser);
  return parser.take();
}

std::string shown(const Json& value) {
  constexpr std::size_t kShown = 40;
  const std::string text = value.dump(-1, ' ', true);  // ASCII, so that cutting it is safe
  return text.size() > kShown ? text.substr(0, kShown) + "…" : text;
}

JsonFields::JsonFields(std::string where, const Json& object) : where_(std::move(where)), object_(object) {
  if (!object.is_object()) throw InputError(fmt::format("{}: found {}; required an object", where_, shown(object)));
}

const Json* JsonFields::find(const char* key) const {
  const auto found = object_.find(key);
  return found == object_.end() ? nullptr : &*found;
}

void JsonFields::fail(const char* key, std::string_view required) const {
  const Json* value = find(key);
  const std::string found = value ? fmt::format("'{}' is {}", key, shown(*value)) : fmt::format("no '{}'", key);
  throw InputError(fmt::format("{}: {}; required {}", where_, found, required));
}

void JsonFields::refuse_other_keys(std::initializer_list<std::string_view> known) const {
  for (const auto& [key, value] : object_.items())
    if (std::find(known.begin(), known.end(), key) == known.end())
      throw InputError(
          fmt::format("{}: unknown key {}; required one of '{}'", where_, shown(key), fmt::join(known, "', '")));
}

const std::string& JsonFields::string(const char* key) const {
  const Json* value = find(key);
  if (value == nullptr || !value->is_string()) fail(key, "a string");
  return value->get_ref<const std::string&>();
}

double JsonFields::number(const char* key) const {
  const Json* value = find(key);
  if (value == nullptr || !value->is_number()) fail(key, "a number");
  return value->get<double>();
}

Bytes JsonFields::bytes(const char* key) const {
  const Json* value = find(key);
  if (value != nullptr && value->is_number_unsigned() && value->get<Bytes>() <= static_cast<Bytes>(kLargestCost)) {
    return value->get<Bytes>();
  }
  const double number = value != nullptr && value->is_number_float() ? value->get<double>() : -1;
  if (!(number >= 0 && number <= kLargestCost && number == std::floor(number)))
    fail(key, fmt::format("a whole number of bytes between 0 and {:g}", kLargestCost));
  return static_cast<Bytes>(number);
}

std::uint32_t JsonFields::index(const char* key) const {
  const Json* value = find(key);
  if (value == nullptr || !is_index(*value)) fail(key, "an index");
  return value->get<std::uint32_t>();
}

std::vector<std::uint32_t> JsonFields::indices(const char* key) const {
  const Json* value = find(key);
  if (value == nullptr) return {};
  if (!value->is_array() || !std::all_of(value->begin(), value->end(), is_index)) fail(key, "an array of indices");
  return value->get<std::vector<std::uint32_t>>();
}

std::vector<std::string> JsonFields::strings(const char* key) const {
  const Json* value = find(key);
  if (value == nullptr) return {};
  const auto is_string = [](const Json& element) { return element.is_string(); };
  if (!value->is_array() || !std::all_of(value->begin(), value->end(), is_string)) fail(key, "an array of strings");
  return value->get<std::vector<std::string>>();
}

std::string JsonFields::string_or(const char* key, std::string_view fallback) const {
  return find(key) ? string(key) : std::string(fallback);
}

}  // namespace doppler::formats
