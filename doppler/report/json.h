#pragma once

#include <string>
#include <string_view>

#include "doppler/report/results.h"

namespace doppler {

// The JSON that others script against (docs/json.md), ending with a newline. It says what kind of result it is.
std::string to_json(const AnyResult& result);

// What to_json() wrote. Throws InputError naming `where` if the text is no result of this version.
AnyResult parse_result(const std::string& where, std::string_view text);

}  // namespace doppler
