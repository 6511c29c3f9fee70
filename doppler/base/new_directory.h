#pragma once

#include <functional>
#include <string>
#include <vector>

namespace doppler {

// A directory that appears with all its files or not at all: they are written to path(), beside the place where the
// directory goes. Unless it was given its name, it disappears with this.
class NewDirectory {
 public:
  // Whether a directory with these names in it may be replaced; an empty one always may.
  using MayReplace = std::function<bool(const std::string& directory, const std::vector<std::string>& names)>;

  // Throws InputError if `target` is something else than a directory that may be replaced, or cannot be made.
  NewDirectory(std::string target, const MayReplace& may_replace);
  ~NewDirectory();
  NewDirectory(const NewDirectory&) = delete;
  NewDirectory& operator=(const NewDirectory&) = delete;

  const std::string& path() const { return path_; }
  // Gives it its name. Throws InputError if that cannot be done.
  void finish();

 private:
  std::string target_, path_;
};

}  // namespace doppler
