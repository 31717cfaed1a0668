#include "base/metrics.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <deque>
#include <mutex>
#include <variant>

#include "base/check.h"
#include "base/double_text.h"
#include "base/utf8.h"

namespace pagoda::base {
namespace {

bool is_letter(char character) {
    return (character >= 'a' && character <= 'z') || (character >= 'A' && character <= 'Z') ||
           character == '_';
}

bool is_digit(char character) {
    return character >= '0' && character <= '9';
}

bool is_label_name(std::string_view name) {
    if (name.empty() || name.starts_with("__") || is_digit(name[0])) return false;
    return std::all_of(name.begin(), name.end(),
                       [](char character) { return is_letter(character) || is_digit(character); });
}

bool is_metric_name(std::string_view name) {
    if (name.empty() || is_digit(name[0])) return false;
    return std::all_of(name.begin(), name.end(), [](char character) {
        return is_letter(character) || is_digit(character) || character == ':';
    });
}

// Quotes are escaped in label values and not in help texts.
std::string escaped(std::string_view text, bool quotes) {
    std::string out;
    for (const char character : replace_invalid_utf8(text)) {
        if (character == '\n') {
            out.append("\\n");
        } else if (character == '\\' || (quotes && character == '"')) {
            out.push_back('\\');
            out.push_back(character);
        } else {
            out.push_back(character);
        }
    }
    return out;
}

// Whole numbers without point and exponent.
std::string number_text(double value) {
    constexpr double kWholeBelow = 9007199254740992.0;  // 2^53, up to which all integers are exact
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
    if (std::fabs(value) <= kWholeBelow && std::trunc(value) == value) {
        return std::to_string(static_cast<std::int64_t>(value));
    }
    return shortest_double(value);
}

// Labels as `a="1",b="2"`, sorted by name, which is their identity as well.
std::string label_text(Labels labels, bool le_allowed) {
    std::sort(labels.begin(), labels.end());
    std::string out;
    std::string_view previous;
    for (const auto& [name, value] : labels) {
        CHECK(is_label_name(name), "a label name must match [a-zA-Z_][a-zA-Z0-9_]*, got " + name);
        CHECK(le_allowed || name != "le", "the label le of a histogram is its buckets' own");
        CHECK(name != previous, "a label must appear once, got twice " + name);
        previous = name;
        if (!out.empty()) out.push_back(',');
        out.append(name).append("=\"").append(escaped(value, true)).push_back('"');
    }
    return out;
}

void append_sample(std::string& out, std::string_view name, std::string_view labels,
                   std::string_view value) {
    out.append(name);
    if (!labels.empty()) out.append("{").append(labels).append("}");
    out.append(" ").append(value).append("\n");
}

void append_histogram(std::string& out, const std::string& name, const std::string& labels,
                      const Histogram& histogram) {
    const std::vector<std::uint64_t> cumulative = histogram.bucket_counts();
    const std::string prefix = labels.empty() ? "le=\"" : labels + ",le=\"";
    for (std::size_t bucket = 0; bucket < cumulative.size(); ++bucket) {
        const bool is_last = bucket == histogram.bounds().size();
        const std::string bound = is_last ? "+Inf" : number_text(histogram.bounds()[bucket]);
        append_sample(out, name + "_bucket", prefix + bound + "\"",
                      std::to_string(cumulative[bucket]));
    }
    append_sample(out, name + "_sum", labels, number_text(histogram.sum()));
    append_sample(out, name + "_count", labels, std::to_string(cumulative.back()));
}

}  // namespace

Histogram::Histogram(std::vector<double> bounds) : bounds_(std::move(bounds)) {
    for (std::size_t index = 0; index < bounds_.size(); ++index) {
        CHECK(std::isfinite(bounds_[index]), "a histogram's bounds must be finite");
        CHECK(index == 0 || bounds_[index - 1] < bounds_[index],
              "a histogram's bounds must ascend");
    }
    counts_ = std::make_unique<std::atomic<std::uint64_t>[]>(bounds_.size() + 1);
}

void Histogram::observe(double value) {
    // A bucket holds its upper bound. NaN is above all bounds.
    std::size_t bucket = bounds_.size();
    if (!std::isnan(value)) {
        bucket = static_cast<std::size_t>(std::lower_bound(bounds_.begin(), bounds_.end(), value) -
                                          bounds_.begin());
        sum_.fetch_add(value, std::memory_order_relaxed);
    }
    counts_[bucket].fetch_add(1, std::memory_order_relaxed);
}

std::vector<std::uint64_t> Histogram::bucket_counts() const {
    std::vector<std::uint64_t> cumulative(bounds_.size() + 1);
    std::uint64_t total = 0;
    for (std::size_t bucket = 0; bucket < cumulative.size(); ++bucket) {
        total += counts_[bucket].load(std::memory_order_relaxed);
        cumulative[bucket] = total;
    }
    return cumulative;
}

std::uint64_t Histogram::count() const {
    return bucket_counts().back();
}

struct MetricsRegistry::Impl {
    enum class Kind { kCounter, kGauge, kHistogram };
    struct Metric {
        Metric(std::string text) : labels(std::move(text)) {}  // NOLINT: implicit
        const std::string labels;
        std::variant<std::monostate, Counter, Gauge, Histogram> value;
    };
    struct Family {
        std::string name;
        std::string help;
        Kind kind;
        std::deque<Metric> metrics = {};  // a deque, so that metrics stay where they are
    };

    // REQUIRES: mutex held.
    Family& family(std::string_view name, std::string_view help, Kind kind) {
        CHECK(is_metric_name(name),
              "a metric name must match [a-zA-Z_:][a-zA-Z0-9_:]*, got " + std::string(name));
        for (Family& known : families) {
            if (known.name != name) continue;
            CHECK(known.kind == kind, "registered with two kinds: " + known.name);
            return known;
        }
        return families.emplace_back(
            Family{.name = std::string(name), .help = std::string(help), .kind = kind});
    }

    // The metric of those labels, made if it is new, with a value of type T from `arguments`.
    template <class T, class... Arguments>
    T& metric(Family& family, const Labels& labels, Arguments&&... arguments) {
        const std::string text = label_text(labels, family.kind != Kind::kHistogram);
        for (Metric& known : family.metrics) {
            if (known.labels == text) return *std::get_if<T>(&known.value);
        }
        Metric& added = family.metrics.emplace_back(text);
        return added.value.template emplace<T>(std::forward<Arguments>(arguments)...);
    }

    mutable std::mutex mutex;
    std::deque<Family> families;  // guarded by mutex
};

MetricsRegistry::MetricsRegistry() : impl_(std::make_unique<Impl>()) {}
MetricsRegistry::~MetricsRegistry() = default;

Counter& MetricsRegistry::counter(std::string_view name, std::string_view help,
                                  const Labels& labels) {
    const std::lock_guard lock(impl_->mutex);
    return impl_->metric<Counter>(impl_->family(name, help, Impl::Kind::kCounter), labels);
}

Gauge& MetricsRegistry::gauge(std::string_view name, std::string_view help, const Labels& labels) {
    const std::lock_guard lock(impl_->mutex);
    return impl_->metric<Gauge>(impl_->family(name, help, Impl::Kind::kGauge), labels);
}

Histogram& MetricsRegistry::histogram(std::string_view name, std::string_view help,
                                      std::vector<double> bounds, const Labels& labels) {
    const std::lock_guard lock(impl_->mutex);
    Impl::Family& family = impl_->family(name, help, Impl::Kind::kHistogram);
    if (!family.metrics.empty()) {
        const auto* first = std::get_if<Histogram>(&family.metrics.front().value);
        CHECK(std::equal(bounds.begin(), bounds.end(), first->bounds().begin(),
                         first->bounds().end()),
              "registered with two sets of bounds: " + family.name);
    }
    return impl_->metric<Histogram>(family, labels, std::move(bounds));
}

std::string MetricsRegistry::render() const {
    constexpr std::string_view kKindNames[] = {"counter", "gauge", "histogram"};
    const std::lock_guard lock(impl_->mutex);
    std::string out;
    for (const Impl::Family& family : impl_->families) {
        const std::string_view kind = kKindNames[static_cast<std::size_t>(family.kind)];
        out.append("# HELP ").append(family.name).append(" ");
        out.append(escaped(family.help, false)).append("\n");
        out.append("# TYPE ").append(family.name).append(" ").append(kind).append("\n");
        for (const Impl::Metric& metric : family.metrics) {
            if (const auto* histogram = std::get_if<Histogram>(&metric.value)) {
                append_histogram(out, family.name, metric.labels, *histogram);
                continue;
            }
            const auto* counter = std::get_if<Counter>(&metric.value);
            const double value =
                counter != nullptr ? counter->value() : std::get_if<Gauge>(&metric.value)->value();
            append_sample(out, family.name, metric.labels, number_text(value));
        }
    }
    return out;
}

}  // namespace pagoda::base
