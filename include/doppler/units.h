#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace doppler {

// Graphs with explicit unit-less costs (published .txt, STG) use `Seconds` for the file's own unit. Integers
// up to 2^53 are exact in a double, so simulations of integer costs are exact.
using Seconds = double;
using Bytes = std::uint64_t;
using Flops = double;

inline constexpr Seconds milliseconds(double n) { return n * 1e-3; }
inline constexpr Seconds microseconds(double n) { return n * 1e-6; }
inline constexpr double gigabytes_per_second(double n) { return n * 1e9; }
inline constexpr Bytes gibibytes(Bytes n) { return n << 30; }

// "30s", "500ms", "2m", "1.5h", "30" (seconds). Throws InputError naming `where`.
Seconds parse_duration(std::string_view text, std::string_view where);
// "16GiB", "600MB", "1024". Throws InputError naming `where`.
Bytes parse_bytes(std::string_view text, std::string_view where);

// "10%", "0.1": a share, from 0 to below 1 unless `most` says otherwise. Throws InputError naming `where`.
double parse_share(std::string_view text, std::string_view where, double most = 1);

std::string format_seconds(Seconds value);  // "1.23 ms"
std::string format_bytes(Bytes value);      // "1.5 GiB"

}  // namespace doppler
