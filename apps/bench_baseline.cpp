#include "bench_baseline.h"

#include <filesystem>
#include <fstream>
#include <system_error>

#include <fmt/core.h>

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
    const auto path = arguments.value(kBaselineOption.name);
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

base::Status BenchBaseline::save() const {
    if (save_path_.empty()) return {};
    Json shares = Json::object();
    for (const auto& [key, share] : now_) shares.set(key, share);
    Json document = Json::object();
    document.set("version", kVersion);
    document.set("machine", machine_);
    document.set("shares", std::move(shares));
    const std::string part = save_path_ + ".part";
    std::ofstream file(part, std::ios::binary | std::ios::trunc);
    file << document.dump({.indent = 1}) << '\n';
    file.close();
    std::error_code failure;
    if (file) std::filesystem::rename(part, save_path_, failure);
    if (!file || failure)
        return base::Error{base::ErrorCode::kIo,
                           fmt::format("{}: the baseline can't be written", save_path_),
                           "save-baseline"};
    fmt::print(stderr, "saved {} shares as {}\n", now_.size(), save_path_);
    return {};
}

std::string change_text(std::optional<double> before, double now) {
    if (!before) return "new";
    return fmt::format("{:+.1f}%", (now / *before - 1) * 100);
}

}  // namespace pagoda::apps
