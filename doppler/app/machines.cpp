#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "doppler/app/flags/options.h"
#include "doppler/app/verbs.h"
#include "doppler/base/error.h"
#include "doppler/base/file.h"
#include "doppler/machine.h"
#include "doppler/results.h"

namespace doppler {
namespace {

struct MachinesFlags : Options {
  std::string name, topology, output = "-";
};

MachineList known_machines() {
  MachineList list;
  for (const DeviceProduct& kind : device_products()) {
    const Device device = kind.make("device");
    list.kinds.push_back({std::string(kind.name), std::string(kind.summary), std::string(kind.source), device.memory});
  }
  for (const MachinePreset& preset : machine_presets()) {
    const Machine machine = preset.make();
    Bytes memory = 0;
    for (DeviceId id = 0; id < machine.device_count(); ++id) memory += machine.device(id).memory;
    list.presets.push_back({std::string(preset.name), std::string(preset.summary), "docs/machines.md", memory});
  }
  return list;
}

void run_machines(const MachinesFlags& flags) {
  check_outputs({flags.name, flags.topology}, {{"-o", flags.output}, {"--json", flags.json}, {"--html", flags.html}});
  if (flags.name.empty()) {
    if (!flags.topology.empty())
      throw InputError("--topo: found no machine; required one, such as 'doppler machines a100:4 --topo FILE'");
    return present(flags, known_machines());
  }
  Machine machine = load_machine(flags.name);
  if (!flags.topology.empty()) machine = with_topology(machine, flags.topology, read_file(flags.topology));
  const bool to_stdout = flags.output == "-" && !flags.json.empty() && !flags.json_to_stdout();
  if (!flags.json.empty()) write_file_atomically(flags.json, machine_to_json(machine));
  if (!flags.json_to_stdout() && !to_stdout) write_file_atomically(flags.output, machine_to_json(machine));
}

}  // namespace

void add_machines(CLI::App& command) {
  CLI::App* verb =
      command.add_subcommand("machines", "List the machines that are known, or write one as a file to edit");
  auto options = std::make_shared<MachinesFlags>();
  verb->add_option("machine", options->name, "What --machine takes; none: all that are known");
  verb->add_option("--topo", options->topology, "Links as 'nvidia-smi topo -m' shows them")->type_name("FILE");
  verb->add_option("-o,--output", options->output, "Where the machine file goes; - is standard output")
      ->type_name("FILE")
      ->capture_default_str();
  add_output_flags(*verb, *options);
  verb->footer("Example:\n  doppler machines rtx4090:1+rtx3060:1 -o mine.json");
  verb->callback([options] { run_machines(*options); });
}

}  // namespace doppler
