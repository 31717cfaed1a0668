// The YAML file: the only place that knows the YAML library.

#include <set>

#include <fmt/core.h>
#include <yaml-cpp/yaml.h>

#include "config.h"
#include "text_input.h"

namespace pagoda::apps {
namespace {

using Entries = std::vector<std::pair<std::string, std::vector<std::string>>>;

base::Error at(const std::string& path, const YAML::Mark& mark, std::string_view what) {
    if (mark.is_null()) return base::invalid(fmt::format("{}: {}", path, what));
    return base::invalid(fmt::format("{}:{}: {}", path, mark.line + 1, what));
}

base::Result<std::vector<std::string>> values_of(const std::string& path, const std::string& key,
                                                 const YAML::Node& node) {
    if (node.IsScalar()) return std::vector<std::string>{node.Scalar()};
    if (!node.IsSequence())
        return at(path, node.Mark(),
                  fmt::format("{} needs a value or a list of values{}", key,
                              node.IsNull() ? "; leave the line out for the default" : ""));
    std::vector<std::string> values;
    for (const YAML::Node& item : node) {
        if (!item.IsScalar())
            return at(path, item.Mark(), fmt::format("{} must list plain values", key));
        values.push_back(item.Scalar());
    }
    return values;
}

base::Result<Entries> read_entries(const std::string& path) {
    const auto text = read_text_file(path);
    if (!text) return text.error();
    const std::vector<YAML::Node> documents = YAML::LoadAll(*text);
    Entries entries;
    if (documents.empty() || (documents.size() == 1 && documents[0].IsNull())) return entries;
    if (documents.size() > 1)
        return base::invalid(
            fmt::format("{}: holds {} YAML documents, must be one", path, documents.size()));
    const YAML::Node& root = documents[0];
    if (!root.IsMap())
        return at(path, root.Mark(), "must be a mapping of keys to values (KEY: VALUE lines)");
    std::set<std::string> seen;
    for (const auto& entry : root) {
        if (!entry.first.IsScalar()) return at(path, entry.first.Mark(), "a key must be a word");
        const std::string key = entry.first.Scalar();
        if (!seen.insert(key).second)
            return at(path, entry.first.Mark(), fmt::format("{} stands there twice", key));
        auto values = values_of(path, key, entry.second);
        if (!values) return std::move(values).error();
        entries.emplace_back(key, std::move(values).value());
    }
    return entries;
}

}  // namespace

base::Result<Entries> read_config_file(const std::string& path) {
    try {
        return read_entries(path);
    } catch (const YAML::Exception& error) {
        return at(path, error.mark, error.msg);
    }
}

}  // namespace pagoda::apps
