#pragma once

#include <string_view>

namespace doppler {

// Script and style of the page, as web/bundle.mjs makes them, and their hashes as a Content-Security-Policy names them.
struct PageBundle {
  std::string_view script, style, script_hash, style_hash;
};
// Null in a build without npm (page_bundle_absent.cpp).
const PageBundle* page_bundle();

}  // namespace doppler
