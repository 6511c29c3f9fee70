#pragma once

#include <string>
#include <vector>

namespace doppler {

// Points and lines over two axes.
struct Plot {
  struct Series {
    std::string label;         // in the legend; empty: not there
    std::vector<double> x, y;  // of one length; points that are not finite are left out
    bool line = false;         // joined in the order given, instead of dots
    std::string colour = {};   // as in SVG; empty: the next of a palette that the colour-blind can read
  };
  // A vertical line.
  struct Mark {
    double x = 0;
    std::string label = {};
  };

  std::string title, x_title, y_title;
  std::vector<Series> series;
  std::vector<Mark> marks = {};
  bool diagonal = false;   // the line y = x; both axes then have the same range
  bool from_zero = false;  // the y axis begins at 0; with `diagonal` both do
};

// A picture that needs nothing else. Throws InternalError if a series has x and y of different lengths; ends with a
// newline.
std::string plot_to_svg(const Plot& plot);

// Returns the next number that is not less and 1, 2 or 5 times a power of ten.
double tick_distance(double rough);
// Returns the text as it may stand in SVG; control characters become '?'.
std::string escaped_for_svg(const std::string& text);

}  // namespace doppler
