#include "doppler/graph/formats/json_reader.h"

#include <algorithm>
#include <cmath>

#include "doppler/base/error.h"
#include "doppler/graph/graph.h"

namespace doppler::formats {
namespace {

// No graph format nests deeper than ten. The limit keeps everything recursive in the library (copying,
// printing) within the stack, whatever the file holds.
constexpr int kDeepest = 64;

// Listens to the parser: follows the path of keys, hands out the elements of sections and tells the parser to
// drop them.
class SectionListener {
 public:
  using Event = Json::parse_event_t;

  SectionListener(const std::string& where, std::span<const JsonSection> sections)
      : where_(where), sections_(sections), seen_(sections.size(), false) {}

  // As the library calls it: `depth` of the value, and the value itself once it is complete. False drops it.
  bool operator()(int depth, Event event, Json& value) {
    const auto level = static_cast<std::size_t>(depth);
    switch (event) {
      case Event::object_start:
        start(depth);
        return true;
      case Event::array_start:
        start(depth);
        if (active_ == nullptr) enter_section(level);
        return true;
      case Event::key:
        // A key at `depth` belongs to the object one level up.
        path_.resize(level);
        path_.push_back(value.get<std::string>());
        ++keys_[level - 1];
        return true;
      case Event::object_end:
        if (value.is_object() && value.size() != keys_[level])
          throw InputError(
              fmt::format("{}: an object{} repeats a key; required each key once", where_, path_text(level)));
        return element(level, value);
      case Event::array_end:
        if (active_ != nullptr && level + 1 == element_level_) active_ = nullptr;
        return element(level, value);
      case Event::value:
        return element(level, value);
    }
    throw InternalError("unknown JSON event");
  }

 private:
  void start(int depth) {
    if (depth >= kDeepest)
      throw InputError(fmt::format("{}: nested more than {} levels deep; required fewer", where_, kDeepest));
    const auto level = static_cast<std::size_t>(depth);
    path_.resize(std::min(path_.size(), level + 1));  // forgets the keys of closed objects
    keys_.resize(std::max(keys_.size(), level + 1));
    keys_[level] = 0;
  }

  // path_[0] stands for the root; path_[i] is the key at depth i, empty inside an array.
  std::string path_text(std::size_t level) const {
    std::string text;
    for (std::size_t i = 1; i <= level && i < path_.size(); ++i)
      if (!path_[i].empty()) text += (text.empty() ? " in '" : ".") + path_[i];
    return text.empty() ? text : text + "'";
  }

  bool is_at(std::string_view section, std::size_t level) const {
    if (path_.size() != level + 1) return false;  // an array inside an array
    for (std::size_t i = 1; i <= level; ++i) {
      const std::string_view key = section.substr(0, section.find('.'));
      if (section.empty() || key != path_[i]) return false;
      section.remove_prefix(std::min(key.size() + 1, section.size()));
    }
    return section.empty();
  }

  void enter_section(std::size_t level) {
    for (std::size_t i = 0; i < sections_.size(); ++i) {
      if (!is_at(sections_[i].path, level)) continue;
      if (seen_[i])
        throw InputError(
            fmt::format("{}: '{}' appears twice; required each key once", where_, sections_[i].path));
      seen_[i] = true;
      active_ = &sections_[i];
      element_level_ = level + 1;
      next_index_ = 0;
    }
  }

  bool element(std::size_t level, const Json& value) {
    if (active_ == nullptr || level != element_level_) return true;
    active_->on_element(next_index_++, value);
    return false;
  }

  const std::string& where_;
  std::span<const JsonSection> sections_;
  std::vector<bool> seen_;
  std::vector<std::string> path_{""};
  std::vector<std::size_t> keys_;  // of the open object at each depth
  const JsonSection* active_ = nullptr;
  std::size_t element_level_ = 0, next_index_ = 0;
};

// The library's text without its code in brackets and without the input that it quotes, which may be long.
std::string brief(std::string text) {
  constexpr std::size_t kLongest = 160;
  const std::size_t code = text.find("] ");
  if (code != std::string::npos) text.erase(0, code + 2);
  return text.substr(0, std::min(text.find("; last read"), kLongest));
}

bool is_index(const Json& value) {
  return value.is_number_unsigned() && value.get<std::uint64_t>() < std::numeric_limits<std::uint32_t>::max();
}

}  // namespace

Json parse_json(const std::string& where, std::string_view content, std::span<const JsonSection> sections) {
  SectionListener listener(where, sections);
  try {
    return Json::parse(content, std::ref(listener));
  } catch (const Json::out_of_range& error) {
    throw InputError(
        fmt::format("{}: {}; required numbers that a double can hold", where, brief(error.what())));
  } catch (const Json::exception& error) {
    throw InputError(
        fmt::format("{}: not JSON ({}); required a complete JSON file", where, brief(error.what())));
  }
}

std::string shown(const Json& value) {
  constexpr std::size_t kShown = 40;
  const std::string text = value.dump(-1, ' ', true);  // ASCII, so that cutting it is safe
  return text.size() > kShown ? text.substr(0, kShown) + "…" : text;
}

JsonFields::JsonFields(std::string where, const Json& object) : where_(std::move(where)), object_(object) {
  if (!object.is_object())
    throw InputError(fmt::format("{}: found {}; required an object", where_, shown(object)));
}

const Json* JsonFields::find(const char* key) const {
  const auto found = object_.find(key);
  return found == object_.end() ? nullptr : &*found;
}

void JsonFields::fail(const char* key, std::string_view required) const {
  const Json* value = find(key);
  const std::string found =
      value ? fmt::format("'{}' is {}", key, shown(*value)) : fmt::format("no '{}'", key);
  throw InputError(fmt::format("{}: {}; required {}", where_, found, required));
}

void JsonFields::refuse_other_keys(std::initializer_list<std::string_view> known) const {
  for (const auto& [key, value] : object_.items())
    if (std::find(known.begin(), known.end(), key) == known.end())
      throw InputError(fmt::format("{}: unknown key {}; required one of '{}'", where_, shown(key),
                                   fmt::join(known, "', '")));
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
  if (value != nullptr && value->is_number_unsigned() &&
      value->get<Bytes>() <= static_cast<Bytes>(kLargestCost)) {
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
  if (!value->is_array() || !std::all_of(value->begin(), value->end(), is_index))
    fail(key, "an array of indices");
  return value->get<std::vector<std::uint32_t>>();
}

std::vector<std::string> JsonFields::strings(const char* key) const {
  const Json* value = find(key);
  if (value == nullptr) return {};
  const auto is_string = [](const Json& element) { return element.is_string(); };
  if (!value->is_array() || !std::all_of(value->begin(), value->end(), is_string))
    fail(key, "an array of strings");
  return value->get<std::vector<std::string>>();
}

std::string JsonFields::string_or(const char* key, std::string_view fallback) const {
  return find(key) ? string(key) : std::string(fallback);
}

}  // namespace doppler::formats
