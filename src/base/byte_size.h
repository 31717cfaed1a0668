#pragma once
// Sizes of memory as people write and read them, and what this process may use.

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace pagoda::base {

// "1024", "512MiB", "1.5GB", "64k": KiB, MiB, GiB, TiB and the bare letters k, m, g, t are powers
// of 1024; kB, MB, GB, TB of 1000. Upper and lower case are one, a blank before the unit is
// allowed.
[[nodiscard]] Result<std::uint64_t> parse_byte_size(std::string_view text);
// "512 MiB", "1.4 GiB", "0.977 GiB": three significant digits.
[[nodiscard]] std::string format_byte_size(std::uint64_t bytes);
// The smaller of physical memory and the cgroup limit (v1 and v2, parent groups too), in bytes;
// 0 when the system says neither.
[[nodiscard]] std::uint64_t memory_limit_bytes();
// Resident bytes of this process now; 0 when the system does not say.
[[nodiscard]] std::uint64_t resident_bytes();

}  // namespace pagoda::base
