#pragma once

// Results as one HTML file that needs nothing else: no network, no server, no other file.
//
//   const doppler::PlaceResult found = doppler::place(problem);                      // place.h
//   std::ofstream("report.html") << doppler::report_page("BERT", {{"auto", found}});
//
// Limits. A result without a schedule (schedule.h) is drawn without a timeline. A library that was built without npm
// makes plain pages: the text of results, and their plots as pictures.

#include <string>
#include <vector>

#include "doppler/results.h"

namespace doppler {

// A result and what the page calls it.
struct NamedResult {
  std::string name;
  AnyResult result;
  std::string metrics = {};  // of a training: a JSON object per line
};

// Neighbours that are placements or simulations with schedules share a time axis. Everything that comes from files
// stays text, whatever it holds, and the page's Content-Security-Policy runs no script but its own.
std::string report_page(const std::string& title, const std::vector<NamedResult>& results);
// Pictures and tables of timelines alone, for papers, spreadsheets and terminals. Each throws InputError, with the name
// of the result, where a result has no schedule.
//
// An SVG picture: timelines one above the other on one time axis. Of a validation or a service, its plot.
std::string picture_svg(const std::vector<NamedResult>& results);
bool has_picture(const NamedResult& result);
// A row per op and transfer.
std::string timeline_csv(const NamedResult& result);
// A line of letters per device.
std::string timeline_text(const NamedResult& result);
// The page that `doppler watch` serves: it draws what comes as events of the same server, beside nothing else.
std::string live_page(const std::string& title);

}  // namespace doppler
