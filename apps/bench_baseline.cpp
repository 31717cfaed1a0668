#include "bench_baseline.h"

#include <cerrno>
#include <filesystem>
#include <system_error>

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include "base/json.h"
#include "text_input.h"

namespace pagoda::apps {
namespace {

using base::Json;

constexpr std::int64_t kVersion = 1;

base::Error bad_file(const std::string& path, std::string_view reason) {
    return {base::ErrorCode::kInvalidArgument, fmt::format("{} is no baseline: {}", path, reason),
            "baseline"};
}

base::Error unwritable(const std::string& path, std::error_code failure) {
    return {base::ErrorCode::kIo,
            fmt::format("{}: the baseline can't be written: {}", path, failure.message()),
            "save-baseline"};
}

std::error_code last_failure() {
    return {errno, std::generic_category()};
}

// The whole text, or no file.
std::error_code write_file(const std::string& path, std::string_view text) {
    const int descriptor = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (descriptor < 0) return last_failure();
    std::error_code failure;
    while (!text.empty() && !failure) {
        const ssize_t put = write(descriptor, text.data(), text.size());
        if (put >= 0)
            text.remove_prefix(static_cast<std::size_t>(put));
        else if (errno != EINTR)
            failure = last_failure();
    }
    if (close(descriptor) != 0 && !failure) failure = last_failure();
    if (failure) unlink(path.c_str());
    return failure;
}

// Where a file is written before it takes the place of the one that is there.
std::string part_of(const std::string& path) {
    return path + ".part";
}

// That a run of minutes ends with a file is found out before it.
base::Status try_path(const std::string& path) {
    std::error_code unknown;
    if (std::filesystem::is_directory(path, unknown))
        return unwritable(path, std::make_error_code(std::errc::is_a_directory));
    if (const auto failure = write_file(part_of(path), "")) return unwritable(path, failure);
    unlink(part_of(path).c_str());
    return {};
}

base::Result<Json> read_document(const std::string& path) {
    const auto text = read_text_file(path);
    if (!text) return text.error();
    auto document = Json::parse(*text);
    if (!document) return bad_file(path, document.error().message);
    return document;
}

base::Result<std::map<std::string, double>> read_shares(const std::string& path,
                                                        const Json& document) {
    const auto member = [&](std::string_view name) {
        return document.is_object() ? document.find(name) : nullptr;
    };
    const Json* version = member("version");
    if (version == nullptr || *version != Json(kVersion))
        return bad_file(path, fmt::format("its version is not {}", kVersion));
    const Json* shares = member("shares");
    if (shares == nullptr || !shares->is_object() || shares->as_object().empty())
        return bad_file(path, "it holds no shares");
    std::map<std::string, double> result;
    for (const auto& [key, share] : shares->as_object()) {
        if (!share.is_number() || !(share.as_double() > 0))
            return bad_file(path, fmt::format("the share of \"{}\" is no positive number", key));
        result.emplace(key, share.as_double());
    }
    return result;
}

}  // namespace

base::Result<BenchBaseline> BenchBaseline::open(const Arguments& arguments, std::string machine) {
    BenchBaseline baseline;
    baseline.machine_ = std::move(machine);
    baseline.save_path_ = arguments.value(kSaveBaselineOption.name).value_or("");
    if (!baseline.save_path_.empty()) {
        if (const auto status = try_path(baseline.save_path_); !status) return status.error();
    }
    const auto path = arguments.value(kBaselineOption.name);
    if (arguments.has(kMaxDropOption.name)) {
        if (!path)
            return base::invalid("--max-drop needs --baseline, with whose shares it compares");
        const auto percent = arguments.number(kMaxDropOption.name, 0, 0, 100);
        if (!percent) return percent.error();
        baseline.max_drop_ = *percent / 100;
    }
    if (!path) return baseline;
    const auto document = read_document(*path);
    if (!document) return document.error();
    auto shares = read_shares(*path, *document);
    if (!shares) return std::move(shares).error();
    baseline.before_ = std::move(shares).value();
    const Json* other = document->find("machine");
    if (other == nullptr || *other != Json(baseline.machine_))
        fmt::print(stderr, "the baseline is of something else ({}) than this run ({})\n",
                   other != nullptr && other->is_string() ? other->as_string() : "unknown",
                   baseline.machine_);
    return baseline;
}

std::optional<double> BenchBaseline::record(const std::string& key, double share) {
    now_[key] = share;
    const auto before = before_.find(key);
    if (before == before_.end()) return std::nullopt;
    return before->second;
}

base::Status BenchBaseline::finish() const {
    if (auto status = check_drops(); !status) {
        const std::string_view unsaved = save_path_.empty() ? "" : "; no baseline is saved";
        return base::Error{status.error().code,
                           fmt::format("{}{}", status.error().message, unsaved)};
    }
    return save();
}

base::Status BenchBaseline::check_drops() const {
    if (!max_drop_) return {};
    std::size_t compared = 0, dropped = 0;
    double worst = 1;
    std::string worst_key;
    for (const auto& [key, now] : now_) {
        const auto before = before_.find(key);
        if (before == before_.end()) continue;
        ++compared;
        const double ratio = now / before->second;
        if (ratio < 1 - *max_drop_) ++dropped;
        if (ratio >= worst) continue;
        worst = ratio;
        worst_key = key;
    }
    if (compared == 0)
        return base::Error{base::ErrorCode::kInvalidArgument,
                           "--max-drop: the baseline holds none of the shares that were measured"};
    if (dropped == 0) return {};
    return base::Error{
        base::ErrorCode::kInternal,
        fmt::format(
            "--max-drop: {} of {} shares fell by more than {:.4g} %, most of all \"{}\": {}",
            dropped, compared, *max_drop_ * 100, worst_key, change_text(1, worst))};
}

base::Status BenchBaseline::save() const {
    if (save_path_.empty()) return {};
    if (now_.empty()) {
        fmt::print(stderr, "nothing was measured, and no baseline is saved\n");
        return {};
    }
    Json shares = Json::object();
    for (const auto& [key, share] : now_) shares.set(key, share);
    Json document = Json::object();
    document.set("version", kVersion);
    document.set("machine", machine_);
    document.set("shares", std::move(shares));
    const std::string part = part_of(save_path_);
    std::error_code failure = write_file(part, document.dump({.indent = 1}) + '\n');
    if (!failure) {
        std::filesystem::rename(part, save_path_, failure);
        if (failure) unlink(part.c_str());
    }
    if (failure) return unwritable(save_path_, failure);
    fmt::print(stderr, "saved {} shares as {}\n", now_.size(), save_path_);
    return {};
}

std::string change_text(std::optional<double> before, double now) {
    if (!before) return "new";
    return fmt::format("{:+.1f}%", (now / *before - 1) * 100);
}

}  // namespace pagoda::apps
