// Runs a libFuzzer target without libFuzzer: first every file of the corpus, then seeded random changes of
// them. Finds less than libFuzzer, because it is blind to coverage, but runs wherever the tests run.
//
//   fuzz_stg [--runs N] [--seconds S] [--seed K] [--artifact FILE] corpus files and directories…

#include <algorithm>
#include <array>
#include <cstdio>
#include <fcntl.h>
#include <filesystem>
#include <unistd.h>

#include "doppler/base/error.h"
#include "doppler/base/file.h"
#include "doppler/base/rng.h"
#include "doppler/budget.h"
#include "tests/fuzz/check_reader.h"

namespace doppler {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLongestInput = 1 << 16;

struct Options {
  std::uint64_t runs = Budget::kUnlimited;
  Seconds seconds = 3600;
  std::uint64_t seed = 1;
  std::string artifact = "crash";
  std::vector<std::string> corpus;
};

Options parse_options(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    if (!flag.starts_with("--")) {
      options.corpus.push_back(flag);
      continue;
    }
    if (i + 1 == argc) throw InputError(flag + ": no value; required one");
    const std::string value = argv[++i];
    if (flag == "--runs")
      options.runs = std::stoull(value);
    else if (flag == "--seconds")
      options.seconds = parse_duration(value, flag);
    else if (flag == "--seed")
      options.seed = std::stoull(value);
    else if (flag == "--artifact")
      options.artifact = value;
    else
      throw InputError(flag + ": unknown; required --runs, --seconds, --seed or --artifact");
  }
  return options;
}

std::vector<std::string> load_corpus(const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    if (!fs::is_directory(path)) {
      files.push_back(path);
      continue;
    }
    for (const auto& entry : fs::recursive_directory_iterator(path))
      if (entry.is_regular_file() && entry.path().extension() != ".expected") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  std::vector<std::string> inputs;
  for (const std::string& file : files) inputs.push_back(read_file(file));
  if (inputs.empty()) inputs.emplace_back();
  return inputs;
}

// A file that holds the current input, so that it is on disk however the process dies. Removed if it lives.
class Artifact {
 public:
  explicit Artifact(std::string path)
      : path_(std::move(path)), file_(::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)) {}
  ~Artifact() {
    ::close(file_);
    ::unlink(path_.c_str());
  }
  Artifact(const Artifact&) = delete;
  Artifact& operator=(const Artifact&) = delete;

  void hold(const std::string& input) {
    const auto size = static_cast<ssize_t>(input.size());
    if (::pwrite(file_, input.data(), input.size(), 0) != size || ::ftruncate(file_, size) != 0)
      throw InputError(path_ + ": cannot be written; required a place for a crashing input");
  }

 private:
  std::string path_;
  int file_;
};

// Texts that readers tend to stumble over.
constexpr std::array<std::string_view, 20> kTokens = {"-1",         "0",          "1e999", "99999999999999999999",
                                                      "4294967295", "4294967296", "nan",   "inf",
                                                      "1e-320",     "0.5",        "null",  "true",
                                                      "\"\"",       "[]",         "{}",    "[",
                                                      "{",          "\n",         ",",     "\""};

std::string mutate(std::string text, const std::vector<std::string>& corpus, Rng& rng) {
  const auto position = [&] { return rng.below(static_cast<std::uint32_t>(text.size()) + 1); };
  for (std::uint32_t changes = 1 + rng.below(4); changes > 0; --changes) {
    const std::size_t at = position();
    const std::size_t length = std::min<std::size_t>(1 + rng.below(16), text.size() - at);
    switch (rng.below(7)) {
      case 0:
        text.erase(at, length);
        break;
      case 1:
        text.insert(at, text.substr(position(), length));
        break;
      case 2:
        text.replace(at, rng.below(4), kTokens[rng.below(kTokens.size())]);
        break;
      case 3:
        if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << rng.below(8)));
        break;
      case 4:
        text.insert(at, 1, static_cast<char>(rng.below(256)));
        break;
      case 5:
        if (rng.below(4) == 0) text.resize(at);
        break;
      case 6: {
        const std::string& other = corpus[rng.below(static_cast<std::uint32_t>(corpus.size()))];
        if (!other.empty()) text.insert(at, other, rng.below(static_cast<std::uint32_t>(other.size())), 64);
        break;
      }
    }
  }
  if (text.size() > kLongestInput) text.resize(kLongestInput);
  return text;
}

int run(const Options& options) {
  const std::vector<std::string> corpus = load_corpus(options.corpus);
  Artifact artifact(options.artifact);
  const auto try_one = [&](const std::string& input) {
    artifact.hold(input);
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
  };
  for (const std::string& input : corpus) try_one(input);
  Rng rng(options.seed);
  const Budget budget = Budget::for_time(options.seconds);
  std::uint64_t runs = 0;
  for (; runs < options.runs && !budget.out_of_time(); ++runs)
    try_one(mutate(corpus[rng.below(static_cast<std::uint32_t>(corpus.size()))], corpus, rng));
  std::printf("%zu corpus files and %llu changed inputs, no crash\n", corpus.size(),
              static_cast<unsigned long long>(runs));
  return 0;
}

}  // namespace
}  // namespace doppler

int main(int argc, char** argv) {
  // A target throws no InputError. Anything else it throws meets no handler and ends the process without
  // unwinding, so that the artifact stays.
  try {
    return doppler::run(doppler::parse_options(argc, argv));
  } catch (const doppler::InputError& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
