#pragma once

#include "doppler/results.h"

namespace doppler {

// Makes every name in a result safe for a terminal (base/terminal_text.h), before it becomes part of a text that has
// lines and columns of its own.
void clean_names(AnyResult& result);

}  // namespace doppler
