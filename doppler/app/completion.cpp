#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "doppler/app/flags/options.h"
#include "doppler/app/verbs.h"
#include "doppler/base/file.h"
#include "doppler/base/version.h"
#include "doppler/machine.h"
#include "doppler/method.h"

// Completion scripts and the man page, made from the definitions of the flags: there is no second list to keep up.
namespace doppler {
namespace {

using Verbs = std::vector<const CLI::App*>;

Verbs verbs_of(const CLI::App& command) {
  const std::vector<const CLI::App*> all = command.get_subcommands({});
  return {all.begin(), all.end()};
}

std::vector<std::string> flags_of(const CLI::App& verb) {
  std::vector<std::string> flags;
  for (const CLI::Option* option : verb.get_options()) {
    for (const std::string& name : option->get_lnames()) flags.push_back("--" + name);
    for (const std::string& name : option->get_snames()) flags.push_back("-" + name);
  }
  return flags;
}

// Values that are known before anything is read, by flag.
std::vector<std::pair<std::string, std::vector<std::string>>> known_values() {
  std::vector<std::string> machines, names;
  for (const MachinePreset& preset : machine_presets()) machines.emplace_back(preset.name);
  for (const DeviceProduct& kind : device_products()) machines.push_back(fmt::format("{}:", kind.name));
  for (const Method& method : methods()) names.emplace_back(method.name);
  return {{"--machine", machines},
          {"-m", machines},
          {"--method", names},
          {"--objective", {"exact", "expected", "p95"}},
          {"--granularity", {"op", "module", "layer"}},
          {"--discipline", {"fifo", "priority", "ordered", "random"}},
          {"--links", {"free", "channels", "receiver", "shared"}},
          {"--export", {"onnx", "device-map", "ort", "llama-cpp", "layers"}}};
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

std::string bash_completion(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::App* verb : verbs_of(command)) names.push_back(verb->get_name());
  std::string text = fmt::format(
      "# bash completion of doppler {}\n"
      "_doppler() {{\n"
      "  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}}\n"
      "  if [ \"$COMP_CWORD\" -eq 1 ]; then COMPREPLY=($(compgen -W \"{} --help --version\" -- \"$word\")); return; "
      "fi\n"
      "  case $before in\n",
      version(), fmt::join(names, " "));
  for (const auto& [flag, values] : known_values())
    text += fmt::format("    {}) COMPREPLY=($(compgen -W \"{}\" -f -- \"$word\")); return;;\n", flag,
                        fmt::join(values, " "));
  text += "  esac\n  local flags=\n  case ${COMP_WORDS[1]} in\n";
  for (const CLI::App* verb : verbs_of(command)) {
    std::vector<std::string> words = flags_of(*verb);
    for (const CLI::App* sub : verbs_of(*verb)) words.push_back(sub->get_name());
    text += fmt::format("    {}) flags=\"{}\";;\n", verb->get_name(), fmt::join(words, " "));
  }
  return text +
         "  esac\n"
         "  if [[ $word == -* ]]; then COMPREPLY=($(compgen -W \"$flags\" -- \"$word\"));\n"
         "  else COMPREPLY=($(compgen -W \"${flags//-*([^ ])/}\" -f -- \"$word\")); fi\n"
         "}\n"
         "shopt -s extglob\n"
         "complete -o filenames -F _doppler doppler\n";
}

std::string quoted_for_zsh(std::string text) {
  std::string quoted;
  for (const char c : text) {
    if (c == '\'') quoted += "'\\'";
    if (c == '[' || c == ']' || c == ':') quoted += '\\';
    quoted += c;
  }
  return quoted;
}

std::string zsh_completion(const CLI::App& command) {
  std::string text = fmt::format(
      "#compdef doppler\n# zsh completion of doppler {}\n_doppler() {{\n  local -a verbs\n  verbs=(\n", version());
  for (const CLI::App* verb : verbs_of(command))
    text += fmt::format("    '{}:{}'\n", verb->get_name(), quoted_for_zsh(verb->get_description()));
  text += "  )\n  if (( CURRENT == 2 )); then _describe verb verbs; return; fi\n  case $words[2] in\n";
  for (const CLI::App* verb : verbs_of(command)) {
    text += fmt::format("    {}) _arguments", verb->get_name());
    for (const CLI::Option* option : verb->get_options())
      for (const std::string& name : option->get_lnames())
        text += fmt::format(" \\\n      '--{}[{}]{}'", name, quoted_for_zsh(first_line(option->get_description())),
                            option->get_items_expected_max() > 0 ? ":value:_files" : "");
    text += " '*:file:_files';;\n";
  }
  return text + "  esac\n}\n_doppler \"$@\"\n";
}

std::string quoted_for_fish(std::string text) {
  std::string quoted;
  for (const char c : text) quoted += c == '\'' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  return quoted;
}

std::string fish_completion(const CLI::App& command) {
  std::string text = fmt::format("# fish completion of doppler {}\n", version());
  for (const CLI::App* verb : verbs_of(command)) {
    text += fmt::format("complete -c doppler -f -n __fish_use_subcommand -a {} -d '{}'\n", verb->get_name(),
                        quoted_for_fish(verb->get_description()));
    for (const CLI::Option* option : verb->get_options())
      for (const std::string& name : option->get_lnames())
        text += fmt::format("complete -c doppler -n '__fish_seen_subcommand_from {}' -l {}{} -d '{}'\n",
                            verb->get_name(), name, option->get_items_expected_max() > 0 ? " -r" : "",
                            quoted_for_fish(first_line(option->get_description())));
  }
  return text;
}

// Text for troff: what begins a line with a dot or has backslashes would be obeyed.
std::string for_roff(const std::string& text) {
  std::string safe;
  bool at_start = true;
  for (const char c : text) {
    if (at_start && (c == '.' || c == '\'')) safe += "\\&";
    if (c == '\\')
      safe += "\\e";
    else if (c == '-')
      safe += "\\-";
    else
      safe += c;
    at_start = c == '\n';
  }
  return safe;
}

std::string man_page(const CLI::App& command) {
  std::string text = fmt::format(
      ".TH DOPPLER 1 \"\" \"doppler {0}\" \"User Commands\"\n.SH NAME\ndoppler \\- {1}\n.SH SYNOPSIS\n.B doppler\n"
      ".I verb\n[\n.I flags\n]\n.SH DESCRIPTION\n{1}\n",
      version(), for_roff(command.get_description()));
  for (const CLI::App* verb : verbs_of(command)) {
    text += fmt::format(".SH \"doppler {}\"\n{}\n", verb->get_name(), for_roff(verb->get_description()));
    for (const CLI::Option* option : verb->get_options()) {
      text += fmt::format(".TP\n.B {}\n{}\n", for_roff(option->get_name(!option->nonpositional(), true)),
                          for_roff(option->get_description()));
    }
    for (const CLI::App* sub : verbs_of(*verb))
      text += fmt::format(".TP\n.B {}\n{}\n", for_roff(sub->get_name()), for_roff(sub->get_description()));
    if (!verb->get_footer().empty()) text += fmt::format(".PP\n.nf\n{}\n.fi\n", for_roff(verb->get_footer()));
  }
  return text +
         ".SH EXIT STATUS\n0 ok, 2 bad input, 3 no feasible placement, 70 a bug, 71 out of memory, 130 interrupted\n";
}

}  // namespace

void add_completion(CLI::App& command) {
  CLI::App* verb = command.add_subcommand("completion", "Write completions for a shell, or the man page");
  auto shell = std::make_shared<std::string>();
  verb->add_option("shell", *shell, "bash, zsh, fish or man")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish", "man"}));
  verb->footer("Example:\n  doppler completion bash > ~/.local/share/bash-completion/completions/doppler");
  verb->callback([&command, shell] {
    write_file_atomically("-", *shell == "bash"   ? bash_completion(command)
                               : *shell == "zsh"  ? zsh_completion(command)
                               : *shell == "fish" ? fish_completion(command)
                                                  : man_page(command));
  });
}

}  // namespace doppler
