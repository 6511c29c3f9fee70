#include <cctype>
#include <optional>
#include <sstream>

#include "doppler/base/error.h"
#include "doppler/machine.h"
#include "doppler/machine/kinds.h"

namespace doppler {
namespace {

// Copies see about 0.9 of an NVLink; one of generations 2 to 4 has 25 GB/s per direction.
constexpr double kSeenByCopies = 0.9, kUsualNvlink = 25e9;

std::optional<unsigned> number_after(std::string_view prefix, const std::string& word) {
  if (!word.starts_with(prefix) || word.size() == prefix.size() || word.size() > prefix.size() + 4) return std::nullopt;
  for (const char c : word.substr(prefix.size()))
    if (std::isdigit(static_cast<unsigned char>(c)) == 0) return std::nullopt;
  return static_cast<unsigned>(std::stoul(word.substr(prefix.size())));
}

// Terminals get underlined headings from nvidia-smi.
std::string without_escapes(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\x1b') {
      while (i < text.size() && std::isalpha(static_cast<unsigned char>(text[i])) == 0) ++i;
      continue;
    }
    plain += text[i];
  }
  return plain;
}

// NV4: four NVLinks. PIX, PXB, PHB: PCIe within a socket. NODE, SYS: across host bridges or sockets.
Link link_of(const std::string& where, const std::string& word, double nvlink) {
  if (const auto links = number_after("NV", word); links && *links > 0)
    return {.latency = microseconds(8), .bytes_per_second = kSeenByCopies * nvlink * *links};
  if (word == "PIX" || word == "PXB" || word == "PHB") return kPcie4;
  if (word == "NODE" || word == "SYS" || word == "SOC") return kThroughHost;
  throw InputError(fmt::format("{}: found '{}'; required X, NV and a number, PIX, PXB, PHB, NODE or SYS", where, word));
}

}  // namespace

Machine with_topology(const Machine& machine, const std::string& where, std::string_view text) {
  std::vector<std::vector<std::string>> rows;
  std::istringstream lines(without_escapes(text));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::vector<std::string> row;
    for (std::string word; words >> word;) row.push_back(word);
    // Rows begin with their GPU, the heading with the first two of them or, for one GPU, nothing that matters.
    if (row.size() > 1 && number_after("GPU", row[0]) && !number_after("GPU", row[1])) rows.push_back(std::move(row));
  }
  if (rows.empty())
    throw InputError(
        fmt::format("{}: found no line that begins with GPU0; required the output of 'nvidia-smi topo -m'", where));
  std::vector<DeviceId> gpus;
  for (DeviceId id = 0; id < machine.device_count(); ++id)
    if (machine.device(id).type != "cpu") gpus.push_back(id);
  if (rows.size() != gpus.size())
    throw InputError(fmt::format("{}: found {} GPUs; required {}, as many as accelerators of machine '{}'", where,
                                 rows.size(), gpus.size(), machine.name()));
  double nvlink = kUsualNvlink;
  for (const DeviceProduct& kind : device_products())
    if (machine.name().starts_with(std::string(kind.name) + ":") && kind.nvlink_bytes_per_second > 0)
      nvlink = kind.nvlink_bytes_per_second;
  std::vector<Device> devices;
  std::vector<Link> links;
  for (DeviceId src = 0; src < machine.device_count(); ++src) {
    devices.push_back(machine.device(src));
    for (DeviceId dst = 0; dst < machine.device_count(); ++dst)
      links.push_back(src == dst ? Link() : machine.link(src, dst));
  }
  for (std::size_t i = 0; i < rows.size(); ++i)
    for (std::size_t j = 0; j < rows.size(); ++j) {
      const std::string at = fmt::format("{}: {} to GPU{}", where, rows[i][0], j);
      if (rows[i].size() < j + 2) throw InputError(fmt::format("{}: found the end of the line; required a link", at));
      if (i != j) links[gpus[i] * devices.size() + gpus[j]] = link_of(at, rows[i][j + 1], nvlink);
    }
  return Machine(machine.name() + ", by topology", std::move(devices), std::move(links), machine.link_model(),
                 machine.jitter());
}

}  // namespace doppler
