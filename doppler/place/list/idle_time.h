#pragma once

#include <vector>

#include "doppler/units.h"

namespace doppler {

// The idle time of one slot of a schedule under construction: the gaps between reservations, and all time
// after the last one. Gaps are kept in time order in chunks that know their longest gap, so a search skips
// what is too short: about sqrt(gaps) steps instead of one per gap, which is what makes insertion affordable
// on large graphs.
class IdleTime {
 public:
  // The earliest start, not before `from`, of a reservation of this length.
  Seconds earliest(Seconds from, Seconds duration) const;
  // `start` must come from earliest() for this duration. A reservation of length 0 still divides its gap:
  // nothing reserved later runs across that instant.
  void reserve(Seconds start, Seconds duration);
  Seconds end() const { return end_; }  // nothing is reserved from here on

 private:
  struct Gap {
    Seconds begin, end;
  };
  struct Chunk {
    std::vector<Gap> gaps;  // never empty
    Seconds longest = 0;
  };
  static constexpr std::size_t kChunkGaps = 256;

  std::size_t first_chunk_ending_after(Seconds time) const;
  static std::vector<Gap>::const_iterator first_gap_ending_after(Seconds time, const std::vector<Gap>& gaps);
  void append_gap(Gap gap);
  void refresh(std::size_t chunk);

  std::vector<Chunk> chunks_;
  Seconds end_ = 0;
};

}  // namespace doppler
