#pragma once
// BenchBaseline: the shares of the roof of an earlier run, saved to a file, that a later run is
// compared with. Shares, not rates: they carry over between clocks and neighbours. One thread.

#include <map>
#include <optional>
#include <string>

#include "command.h"

namespace pagoda::apps {

// The options of a command that can be compared: --baseline and --save-baseline.
inline constexpr OptionSpec kBaselineOption = {
    "baseline", "FILE", "compare with the shares of the roof that an earlier run saved"};
inline constexpr OptionSpec kSaveBaselineOption = {
    "save-baseline", "FILE", "save this run's shares of the roof, to be compared with later"};
inline constexpr OptionSpec kMaxDropOption = {
    "max-drop", "PERCENT",
    "with --baseline: end with status 1 when a share fell by more than PERCENT of what it was"};

class BenchBaseline {
  public:
    // Reads --baseline and --max-drop and tries whether --save-baseline can be written. A file that
    // is missing or damaged is an error, one of another machine a line on standard error.
    // `machine`: the CPU and the number of threads.
    [[nodiscard]] static base::Result<BenchBaseline> open(const Arguments& arguments,
                                                          std::string machine);

    [[nodiscard]] bool is_compared() const { return !before_.empty(); }
    // Takes a share of this run, and gives the one of the earlier run. Keys say what was measured
    // and are never parsed.
    std::optional<double> record(const std::string& key, double share);
    // The end of a run: what --max-drop asks of the shares, then --save-baseline, as a whole or not
    // at all; nothing where nothing was recorded. Shares that fell by more are an error that names
    // how many and the one that fell most, and are not saved: the file may be the one compared
    // with.
    [[nodiscard]] base::Status finish() const;

  private:
    [[nodiscard]] base::Status check_drops() const;
    [[nodiscard]] base::Status save() const;

    std::string machine_, save_path_;
    std::map<std::string, double> before_, now_;
    std::optional<double> max_drop_;  // a part of 1
};

// "+3.1%" of the earlier share, "new" without one.
[[nodiscard]] std::string change_text(std::optional<double> before, double now);

}  // namespace pagoda::apps
