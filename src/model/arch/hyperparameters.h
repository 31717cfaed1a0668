#pragma once
// Hyperparameters: the metadata under "<architecture>." of a checkpoint, read key by key. A read
// always gives a value within its range; the first fault is kept and ends the load in finish(),
// which also refuses keys that nobody read. So a setting that would change the result is either
// understood or an error that names it. Borrows the checkpoint; one thread.

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "formats/checkpoint.h"

namespace pagoda::model::arch {

struct IntRange {
    std::int64_t least = 0, most = 0;
};
struct FloatRange {
    double least = 0, most = 0;
};

class Hyperparameters {
  public:
    explicit Hyperparameters(const formats::Checkpoint& checkpoint) : checkpoint_(checkpoint) {}

    [[nodiscard]] const formats::Checkpoint& checkpoint() const { return checkpoint_; }

    // Keys are without the architecture: "attention.head_count".
    [[nodiscard]] std::int64_t required_int(std::string_view key, IntRange range);
    [[nodiscard]] std::int64_t int_or(std::string_view key, std::int64_t fallback, IntRange range);
    // A size that some files give per layer; layers that differ are refused.
    [[nodiscard]] std::int64_t uniform_int(std::string_view key,
                                           std::optional<std::int64_t> fallback, IntRange range);
    // One value per layer, or a single one, or none; booleans are 0 and 1.
    [[nodiscard]] std::vector<std::int64_t> ints(std::string_view key);
    [[nodiscard]] double required_float(std::string_view key, FloatRange range);
    [[nodiscard]] std::optional<double> find_float(std::string_view key, FloatRange range);
    [[nodiscard]] double float_or(std::string_view key, double fallback, FloatRange range) {
        return find_float(key, range).value_or(fallback);
    }
    // One setting that converters write under either name (`other` may be empty: under the first
    // alone). Where both stand, they must agree.
    [[nodiscard]] double float_of_either(std::string_view key, std::string_view other,
                                         double fallback, FloatRange range);
    [[nodiscard]] std::string string_or_empty(std::string_view key);

    // Records a fault of a key: "FILE: ARCHITECTURE.KEY reason". The first one stays.
    void refuse(std::string_view key, const std::string& reason,
                base::ErrorCode code = base::ErrorCode::kDataLoss);
    void refuse(base::Error error);

    // The first fault; or a key that no reader asked for and that is not known to be harmless.
    [[nodiscard]] base::Status finish();

  private:
    // The value or, after recording the fault, nothing.
    template <class T>
    [[nodiscard]] std::optional<T> taken(base::Result<std::optional<T>> read);
    [[nodiscard]] std::optional<std::int64_t> find_int(std::string_view key, IntRange range);
    [[nodiscard]] std::string whole(std::string_view key) const;
    void refuse_unread_keys();

    const formats::Checkpoint& checkpoint_;
    std::set<std::string, std::less<>> read_;  // whole keys
    std::optional<base::Error> fault_;
};

}  // namespace pagoda::model::arch
