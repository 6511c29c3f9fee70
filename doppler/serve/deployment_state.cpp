#include <bit>

#include <nlohmann/json.hpp>

#include "doppler/base/error.h"
#include "doppler/base/rng.h"
#include "doppler/serve/deployment.h"

// The state of a deployment as a file: one JSON object with the problem's fingerprint, everything that decides, and a
// checksum of both, because a number that lost a digit is a number still.

namespace doppler {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kVersion = 1;
constexpr std::string_view kFormat = "doppler-service";

std::uint64_t hash_of(std::uint64_t hash, std::string_view text) {
  for (const char letter : text) hash = mix(hash, static_cast<unsigned char>(letter));
  return mix(hash, text.size());
}

std::string checksum(const Json& state) { return fmt::format("{:016x}", hash_of(0, state.dump())); }

Json to_state(const Placement& placement) {
  return {{"assignment", placement.device_of_op}, {"priority", placement.priority}};
}

Placement placement_from(const Problem& problem, const Json& json) {
  Placement placement{
      json.at("assignment").get<std::vector<DeviceId>>(), json.at("priority").get<std::vector<std::uint32_t>>(), {}};
  verify(problem, placement);
  return placement;
}

Json to_state(const RatioTrack& track) {
  return {{"recent", track.recent},       {"past", track.past},       {"seen", track.seen},  {"usual", track.usual},
          {"deviation", track.deviation}, {"average", track.average}, {"guess", track.guess}};
}

RatioTrack track_from(const Json& json) {
  RatioTrack track;
  json.at("recent").get_to(track.recent);
  json.at("past").get_to(track.past);
  json.at("seen").get_to(track.seen);
  json.at("usual").get_to(track.usual);
  json.at("deviation").get_to(track.deviation);
  json.at("average").get_to(track.average);
  json.at("guess").get_to(track.guess);
  return track;
}

Json to_state(const DeploymentEvent& event) {
  return {{"run", event.run}, {"kind", static_cast<int>(event.kind)}, {"text", event.text}, {"numbers", event.numbers}};
}

DeploymentEvent event_from(const Json& json) {
  return {json.at("run").get<std::uint64_t>(), static_cast<DeploymentEvent::Kind>(json.at("kind").get<int>()),
          json.at("text").get<std::string>(), json.at("numbers").get<std::vector<std::pair<std::string, double>>>()};
}

}  // namespace

// A hash of graph, costs, machine and rules: what was learned holds for nothing else.
std::string Deployment::fingerprint() const {
  const Rules& rules = problem_.rules();
  const Graph& graph = problem_.graph();
  std::uint64_t hash = hash_of(0, machine_to_json(problem_.machine()));
  const auto add = [&](std::uint64_t value) { hash = mix(hash, value); };
  add(static_cast<std::uint64_t>(rules.discipline));
  add(static_cast<std::uint64_t>(rules.links));
  add(static_cast<std::uint64_t>(rules.ties) * 2 + (rules.bulk_synchronous ? 1 : 0));
  add(rules.seed);
  add(problem_.op_count());
  for (OpId op = 0; op < problem_.op_count(); ++op) {
    for (DeviceId device = 0; device < problem_.device_count(); ++device)
      add(std::bit_cast<std::uint64_t>(problem_.allows(op, device) ? problem_.costs().op_time(op, device)
                                                                   : Costs::kNever));
    hash = hash_of(hash, graph.kind(op));
    add(graph.parameter_bytes(op));
    add(problem_.unit(op).front());
    for (const TensorId tensor : graph.outputs(op)) {
      add(graph.bytes(tensor));
      add(std::bit_cast<std::uint64_t>(graph.explicit_transfer(tensor).value_or(-1)));
      for (const OpId consumer : graph.consumers(tensor)) add(consumer);
    }
  }
  return fmt::format("{:016x}", hash);
}

std::string Deployment::save(std::uint64_t log_bytes) const {
  DOPPLER_CHECK(!asked_, "a state while a run is under way");
  Json state = {{"problem", fingerprint()},
                {"log_bytes", log_bytes},
                {"incumbent", to_state(incumbent_)},
                {"incumbent_times", incumbent_times_},
                {"exploring", exploring_},
                {"credit", credit_},
                {"burst", burst_},
                {"last_burst", last_burst_},
                {"next_search", next_search_},
                {"wait", wait_},
                {"runs", runs_},
                {"explored", explored_},
                {"changes", changes_},
                {"lost", lost_},
                {"searches", searches_},
                {"patience", patience_}};
  for (const char* name : {"dismissed", "absent", "ratios", "events"}) state[name] = Json::array();
  for (const Placement& placement : dismissed_) state["dismissed"].push_back(to_state(placement));
  for (const Absence& absence : absent_) state["absent"].push_back({absence.device, absence.ask_at});
  for (const RatioTrack& track : ratios_.tracks()) state["ratios"].push_back(to_state(track));
  for (const DeploymentEvent& event : events_) state["events"].push_back(to_state(event));
  if (retired_) state["retired"] = to_state(*retired_);
  if (challenger_)
    state["challenger"] = {{"placement", to_state(challenger_->placement)},
                           {"promised", challenger_->promised},
                           {"own", challenger_->own},
                           {"rival", challenger_->rival},
                           {"tests", challenger_->tests}};
  const Json file = {{"format", kFormat}, {"version", kVersion}, {"checksum", checksum(state)}, {"state", state}};
  return file.dump() + "\n";
}

std::uint64_t Deployment::restore(const std::string& where, std::string_view text) {
  DOPPLER_CHECK(runs_ == 0 && !asked_, "a state for a deployment that has begun");
  Json file = Json::parse(text, nullptr, false);
  const auto is = [&](const char* key, Json::value_t type) { return file.contains(key) && file[key].type() == type; };
  if (file.is_discarded() || !file.is_object() || !file.contains("format") || file["format"] != kFormat ||
      !is("version", Json::value_t::number_unsigned) || !is("checksum", Json::value_t::string) ||
      !is("state", Json::value_t::object))
    throw InputError(
        fmt::format("{}: found no whole state of a service; required what 'run --learn --state' wrote, or "
                    "no file, to begin anew",
                    where));
  if (file.value("version", 0) != kVersion)
    throw InputError(
        fmt::format("{}: found a state of version {}; required {}", where, file.value("version", 0), kVersion));
  const Json& state = file["state"];
  if (file.value("checksum", "") != checksum(state))
    throw InputError(
        fmt::format("{}: found a state whose checksum is wrong; required an undamaged one, or no file, to "
                    "begin anew",
                    where));
  if (state.value("problem", "") != fingerprint())
    throw InputError(
        fmt::format("{}: found the state of another problem; required one of this graph, machine and rules", where));
  // The checksum says that we wrote it, so that what is wrong from here on is our own fault.
  incumbent_ = placement_from(problem_, state.at("incumbent"));
  state.at("incumbent_times").get_to(incumbent_times_);
  state.at("exploring").get_to(exploring_);
  state.at("credit").get_to(credit_);
  state.at("burst").get_to(burst_);
  state.at("last_burst").get_to(last_burst_);
  state.at("next_search").get_to(next_search_);
  state.at("wait").get_to(wait_);
  state.at("runs").get_to(runs_);
  state.at("explored").get_to(explored_);
  state.at("changes").get_to(changes_);
  state.at("lost").get_to(lost_);
  state.at("searches").get_to(searches_);
  state.at("patience").get_to(patience_);
  for (const Json& placement : state.at("dismissed")) dismissed_.push_back(placement_from(problem_, placement));
  for (const Json& absence : state.at("absent"))
    absent_.push_back({absence.at(0).get<DeviceId>(), absence.at(1).get<std::uint64_t>()});
  for (const Json& event : state.at("events")) events_.push_back(event_from(event));
  std::vector<RatioTrack> tracks;
  for (const Json& track : state.at("ratios")) tracks.push_back(track_from(track));
  DOPPLER_CHECK(ratios_.restore(std::move(tracks)), "ratios of another problem");
  if (state.contains("retired")) retired_ = placement_from(problem_, state["retired"]);
  if (state.contains("challenger")) {
    const Json& json = state["challenger"];
    challenger_ = Challenger{placement_from(problem_, json.at("placement")), json.at("promised").get<double>(),
                             json.at("own").get<std::vector<Seconds>>(), json.at("rival").get<std::vector<Seconds>>(),
                             json.at("tests").get<std::size_t>()};
  }
  leave_out_absent();
  return state.at("log_bytes").get<std::uint64_t>();
}

}  // namespace doppler
