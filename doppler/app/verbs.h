#pragma once

namespace CLI {
class App;
}  // namespace CLI

namespace doppler {

// Each adds its verb with flags and example to the command; the verb runs when the command line is parsed.
void add_info(CLI::App& command);
void add_place(CLI::App& command);
void add_compare(CLI::App& command);
void add_simulate(CLI::App& command);
void add_why(CLI::App& command);
void add_diff(CLI::App& command);
void add_split(CLI::App& command);
void add_machines(CLI::App& command);
void add_run(CLI::App& command);
void add_calibrate(CLI::App& command);
void add_validate(CLI::App& command);
void add_train(CLI::App& command);
void add_generate(CLI::App& command);
void add_lower(CLI::App& command);
void add_explain(CLI::App& command);
void add_report(CLI::App& command);
void add_watch(CLI::App& command);
void add_help(CLI::App& command);
void add_completion(CLI::App& command);

}  // namespace doppler
