#include "command_line.h"

#include <memory>
#include <string>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/core.h>

#include "base/nearest_name.h"
#include "config_keys.h"

namespace pagoda::apps {
namespace {

// Every option writes here while the line is parsed; nodes of a map stay where they are.
struct Slots {
    const CommandSpec* spec = nullptr;
    CLI::App* app = nullptr;
    std::map<std::string, std::vector<std::string>, std::less<>> options, positionals, config;
};

void add_positionals(CLI::App& app, Slots& slots) {
    for (const PositionalSpec& spec : slots.spec->positionals) {
        std::vector<std::string>& slot = slots.positionals[std::string(spec.name)];
        CLI::Option* option =
            app.add_option(std::string(spec.name), slot, std::string(spec.help))->type_name("");
        option->required(spec.is_required)->allow_extra_args(spec.repeats);
        if (!spec.repeats) option->expected(1);
    }
}

void add_options(CLI::App& app, Slots& slots) {
    for (const OptionSpec& spec : slots.spec->options) {
        std::vector<std::string>& slot = slots.options[std::string(spec.name)];
        std::string flag = "--" + std::string(spec.name);
        if (spec.name == "verbose") flag += ",-v";
        if (spec.value.empty()) {
            app.add_flag_callback(
                flag, [&slot] { slot.assign(1, "true"); }, std::string(spec.help));
            continue;
        }
        app.add_option(flag, slot, std::string(spec.help))
            ->type_name(std::string(spec.value))
            ->expected(1)
            ->allow_extra_args(false)
            ->multi_option_policy(spec.repeats ? CLI::MultiOptionPolicy::TakeAll
                                               : CLI::MultiOptionPolicy::TakeLast);
    }
}

std::string dashes(std::string_view name) {
    std::string result(name);
    for (char& c : result) {
        if (c == '_') c = '-';
    }
    return result;
}

CLI::Option* add_config_flag(CLI::App& app, const ConfigKey& key, std::vector<std::string>& slot) {
    const std::string flag = "--" + dashes(key.name);
    std::string help(key.help);
    if (!key.fallback.empty()) help += fmt::format(" (default: {})", key.fallback);
    if (key.kind == KeyKind::kBool)
        return app.add_flag_function(
            flag + ",!--no-" + dashes(key.name),
            [&slot](std::int64_t count) { slot.assign(1, count > 0 ? "true" : "false"); }, help);
    const bool is_list = key.kind == KeyKind::kList;
    return app.add_option(flag, slot, help)
        ->type_name(std::string(kind_name(key)))
        ->expected(1)
        ->allow_extra_args(false)
        ->multi_option_policy(is_list ? CLI::MultiOptionPolicy::TakeAll
                                      : CLI::MultiOptionPolicy::TakeLast);
}

void add_config_flags(CLI::App& app, Slots& slots) {
    for (const ConfigKey& key : config_keys()) {
        if ((key.uses & slots.spec->config_uses) == 0) continue;
        CLI::Option* option = add_config_flag(app, key, slots.config[std::string(key.name)]);
        // Keys that can only ask for nothing are no news in the help.
        const char* group =
            has_choice(key) ? "Settings (also in --config FILE and as PAGODA_NAME)" : "";
        option->group(group);
        if (key.alias.empty()) continue;
        // A slot of its own: the configuration refuses a key that comes under both names.
        ConfigKey other = key;
        other.name = key.alias;
        other.fallback = {};
        const std::string help = "the same as --" + dashes(key.name);
        other.help = help;
        add_config_flag(app, other, slots.config[std::string(key.alias)])->group(group);
    }
}

void move_given(std::map<std::string, std::vector<std::string>, std::less<>>& from,
                std::map<std::string, std::vector<std::string>, std::less<>>& to) {
    for (auto& [name, values] : from) {
        if (!values.empty()) to.emplace(name, std::move(values));
    }
}

// A command word that is none: the parser itself would only say that an argument is left over.
bool is_unknown_word(int argc, char** argv, std::span<const CommandSpec> commands) {
    if (argc < 2 || argv[1][0] == '-') return false;
    const std::string_view word = argv[1];
    std::vector<std::string_view> known;
    for (const CommandSpec& command : commands) {
        const std::string_view first = command.name.substr(0, command.name.find(' '));
        if (first == word) return false;
        known.push_back(first);
    }
    const std::string_view nearest = base::nearest_name(word, known);
    fmt::print(stderr, "pagoda: unknown command \"{}\"{}; see pagoda --help\n", word,
               nearest.empty() ? "" : fmt::format(" (did you mean {}?)", nearest));
    return true;
}

CLI::App* parent_of(CLI::App& root, std::string_view name) {
    const std::size_t blank = name.find(' ');
    if (blank == std::string_view::npos) return &root;
    const std::string first(name.substr(0, blank));
    for (CLI::App* known : root.get_subcommands([](const CLI::App*) { return true; })) {
        if (known->get_name() == first) return known;
    }
    CLI::App* group = root.add_subcommand(first, "Measurements; see pagoda " + first + " --help");
    group->require_subcommand(1);
    return group;
}

// An unknown flag with the name that was probably meant.
std::string explain(const CLI::ParseError& error, const CLI::App& app) {
    std::string message = error.what();
    const std::size_t begin = message.find("--");
    const bool is_extra = error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError);
    if (!is_extra || begin == std::string::npos) return message;
    std::string word = message.substr(begin);
    word = word.substr(0, word.find_first_of(" =]"));
    std::vector<std::string> names;
    for (const CLI::Option* option : app.get_options()) {
        for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    }
    const std::vector<std::string_view> known(names.begin(), names.end());
    const std::string_view nearest = base::nearest_name(word, known);
    message = fmt::format("unknown option {}", word);
    if (!nearest.empty()) message += fmt::format(" (did you mean {}?)", nearest);
    return message;
}

// The command that the line was meant for, as far as its words were known.
struct Meant {
    const CLI::App* app = nullptr;
    std::string words;  // "pagoda bench roof"
};
Meant meant_command(const CLI::App& root) {
    Meant meant{.app = &root, .words = root.get_name()};
    while (!meant.app->get_subcommands().empty()) {
        meant.app = meant.app->get_subcommands().front();
        meant.words += " " + meant.app->get_name();
    }
    return meant;
}

}  // namespace

ParsedCommand parse_command_line(int argc, char** argv, std::span<const CommandSpec> commands) {
    if (is_unknown_word(argc, argv, commands)) return {.status = ExitCode::kUsage};
    CLI::App root("Pagoda: an engine and server for large language models", "pagoda");
    root.require_subcommand(1);
    std::vector<std::unique_ptr<Slots>> all;
    for (const CommandSpec& command : commands) {
        CLI::App* parent = parent_of(root, command.name);
        const std::string_view word = command.name.substr(command.name.rfind(' ') + 1);
        auto slots = std::make_unique<Slots>();
        slots->spec = &command;
        slots->app = parent->add_subcommand(std::string(word), std::string(command.summary));
        slots->app->footer("Examples:\n" + std::string(command.examples));
        add_positionals(*slots->app, *slots);
        add_options(*slots->app, *slots);
        add_config_flags(*slots->app, *slots);
        all.push_back(std::move(slots));
    }
    if (argc < 2) {
        fmt::print(stderr, "{}", root.help());
        return {.status = ExitCode::kUsage};
    }
    try {
        root.parse(argc, argv);
    } catch (const CLI::CallForHelp& call) {
        root.exit(call);
        return {};
    } catch (const CLI::ParseError& error) {
        const Meant meant = meant_command(root);
        fmt::print(stderr, "pagoda: {}; see {} --help\n", explain(error, *meant.app), meant.words);
        return {.status = ExitCode::kUsage};
    }
    for (const std::unique_ptr<Slots>& slots : all) {
        if (!slots->app->parsed()) continue;
        ParsedCommand result{.command = slots->spec};
        move_given(slots->options, result.arguments.options);
        move_given(slots->positionals, result.arguments.positionals);
        move_given(slots->config, result.arguments.config);
        return result;
    }
    return {.status = ExitCode::kUsage};
}

}  // namespace pagoda::apps
