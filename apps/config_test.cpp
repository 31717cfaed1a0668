#include "config.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "kernels/kv_format.h"
#include "kv/store/kv_store.h"
#include "model_config.h"
#include "settings.h"

namespace pagoda::apps {
namespace {

class YamlFile {
  public:
    explicit YamlFile(std::string_view content)
        : path_((std::filesystem::temp_directory_path() /
                 ("pagoda_config_" + std::to_string(reinterpret_cast<std::uintptr_t>(this))))
                    .string()) {
        std::ofstream(path_) << content;
    }
    ~YamlFile() { std::filesystem::remove(path_); }
    YamlFile(const YamlFile&) = delete;
    YamlFile& operator=(const YamlFile&) = delete;
    [[nodiscard]] const std::string& path() const { return path_; }

  private:
    std::string path_;
};

std::string error_of(const Config::Inputs& inputs) {
    const auto config = Config::load(inputs);
    return config ? "" : config.error().message;
}

// The message without the name of the file.
std::string file_error(std::string_view yaml) {
    const YamlFile file(yaml);
    const std::string message = error_of({.file = file.path()});
    return message.starts_with(file.path()) ? message.substr(file.path().size()) : message;
}

std::string flag_error(const std::string& key, const std::string& value) {
    return error_of({.flags = {{key, {value}}}});
}

TEST(Config, FlagBeatsEnvironmentBeatsFileBeatsDefault) {
    const YamlFile file("max_num_seqs: 3\nmax_queue: 30\nport: 1111\n");
    const auto config =
        Config::load({.file = file.path(),
                      .environment = {{"PAGODA_MAX_NUM_SEQS", "4"}, {"PAGODA_MAX_QUEUE", "40"}},
                      .flags = {{"max_num_seqs", {"5"}}}});
    ASSERT_TRUE(config.ok()) << config.error().message;
    EXPECT_EQ(config->integer("max_num_seqs"), 5);
    EXPECT_EQ(config->source("max_num_seqs"), ConfigSource::kFlag);
    EXPECT_EQ(config->integer("max_queue"), 40);
    EXPECT_EQ(config->source("max_queue"), ConfigSource::kEnvironment);
    EXPECT_EQ(config->integer("port"), 1111);
    EXPECT_EQ(config->source("port"), ConfigSource::kFile);
    EXPECT_EQ(config->text("host"), "127.0.0.1");
    EXPECT_TRUE(config->is_default("host"));
}

TEST(Config, RefusesUnknownNamesWithTheNearestKnownOne) {
    EXPECT_EQ(file_error("max_num_seq: 3\n"),
              ": unknown key \"max_num_seq\" (did you mean max_num_seqs?)");
    EXPECT_EQ(file_error("zzz: 3\n"), ": unknown key \"zzz\"");
    EXPECT_EQ(error_of({.environment = {{"PAGODA_MAX_MODEL_LENGTH", "4"}}}),
              "environment: unknown variable PAGODA_MAX_MODEL_LENGTH (did you mean "
              "PAGODA_MAX_MODEL_LEN?)");
}

TEST(Config, RefusesVariablesOfTestsLikeAnyOtherThatItDoesNotKnow) {
    for (const char* name : {"PAGODA_MODEL", "PAGODA_BIN", "PAGODA_GOLDEN", "PAGODA_X"})
        EXPECT_TRUE(error_of({.environment = {{name, "x"}}})
                        .starts_with(std::string("environment: unknown variable ") + name));
    EXPECT_EQ(error_of({.environment = {{"PAGODA_IAS", "ref"}}}),
              "environment: unknown variable PAGODA_IAS (did you mean PAGODA_ISA?)");
}

TEST(Config, LeavesVariablesOfKernelsAndKubernetesAlone) {
    EXPECT_EQ(error_of({.environment = {{"PAGODA_ISA", "ref"},
                                        {"PAGODA_PORT", "tcp://10.0.0.1:80"},
                                        {"PAGODA_PORT_80_TCP_ADDR", "10.0.0.1"},
                                        {"PAGODA_SERVICE_HOST", "10.0.0.1"}}}),
              "");
}

TEST(Config, NamesKeyValuePlaceAndLimitOfABadValue) {
    EXPECT_EQ(flag_error("max_num_seqs", "0"),
              "command line: max_num_seqs must be an integer from 1 to 4096, got \"0\"");
    EXPECT_EQ(flag_error("port", "80a"),
              "command line: port must be an integer from 0 to 65535, got \"80a\"");
    EXPECT_EQ(flag_error("memory_utilization", "nan"),
              "command line: memory_utilization must be a number from 0.01 to 1, got \"nan\"");
    EXPECT_EQ(flag_error("log_level", "loud"),
              "command line: log_level must be one of debug, info, warning, error, got \"loud\"");
    EXPECT_EQ(error_of({.environment = {{"PAGODA_ALLOW_UNAUTHENTICATED", "maybe"}}}),
              "PAGODA_ALLOW_UNAUTHENTICATED: allow_unauthenticated must be true or false, got "
              "\"maybe\"");
    EXPECT_EQ(flag_error("idle_timeout", "5 days"),
              "command line: idle_timeout: a time must be a number with ms, s, m or h, as 20s, "
              "got \"5 days\"");
    EXPECT_NE(flag_error("kv_cache_memory", "lots").find("kv_cache_memory"), std::string::npos);
}

TEST(Config, RefusesWhatIsKnownAndNotOfferedUnlessItAsksForNothing) {
    EXPECT_EQ(flag_error("kv_cache_dtype", "int4"),
              "command line: kv_cache_dtype int4 is not offered in this version; it can be auto, "
              "f32, bf16, int8");
    EXPECT_EQ(flag_error("kv_cache_dtype", "q8_0"),
              "command line: kv_cache_dtype must be one of auto, f32, bf16, fp8_e4m3, int8, int4, "
              "got \"q8_0\"");
    for (const auto& [key, value] :
         std::vector<std::pair<std::string, std::string>>{{"num_speculative_tokens", "4"},
                                                          {"speculative_method", "ngram"},
                                                          {"draft_model", "small.gguf"},
                                                          {"uds", "/run/pagoda"},
                                                          {"tls_cert", "cert.pem"},
                                                          {"tls_key", "key.pem"},
                                                          {"preemption_mode", "swap"},
                                                          {"pooling", "mean"},
                                                          {"tensor_parallel_size", "2"},
                                                          {"pipeline_parallel_size", "2"},
                                                          {"enable_expert_parallel", "yes"},
                                                          {"scheduling_policy", "deadline"},
                                                          {"block_size", "16"},
                                                          {"request_timeout", "3s"}})
        EXPECT_NE(flag_error(key, value).find("is not offered in this version"), std::string::npos)
            << key;
    for (const auto& [key, value] :
         std::vector<std::pair<std::string, std::string>>{{"enable_prefix_caching", "false"},
                                                          {"enable_prefix_caching", "off"},
                                                          {"num_speculative_tokens", "0"},
                                                          {"draft_model", ""},
                                                          {"preemption_mode", "recompute"},
                                                          {"tensor_parallel_size", "1"},
                                                          {"block_size", "32"},
                                                          {"kv_cache_dtype", "f32"},
                                                          {"kv_cache_dtype", "int8"}})
        EXPECT_EQ(flag_error(key, value), "") << key;
}

TEST(Config, NamesTheOneValueThatARefusedKeyCanHave) {
    EXPECT_EQ(flag_error("request_timeout", "3s"),
              "command line: request_timeout 3s is not offered in this version; it can be none");
}

TEST(Config, SizesHaveLimitsAtBothEnds) {
    EXPECT_EQ(flag_error("max_body", "0"),
              "command line: max_body must be a size from 1 KiB to 4 GiB, got \"0\"");
    EXPECT_EQ(flag_error("max_header", "17MiB"),
              "command line: max_header must be a size from 256 B to 16 MiB, got \"17MiB\"");
    EXPECT_NE(flag_error("kv_cache_memory", "0"), "");
    EXPECT_EQ(flag_error("max_body", "1KiB"), "");
    EXPECT_EQ(flag_error("kv_cache_memory", "1MiB"), "");
}

TEST(Config, NeverPrintsASecretThatItRefuses) {
    EXPECT_EQ(flag_error("admin_api_key", "secret-key").find("secret-key"), std::string::npos);
}

TEST(Config, ReadsListsFromCommasRepeatsAndYaml) {
    const YamlFile file("served-model-name: [a, b]\n");
    const auto from_file = Config::load({.file = file.path()});
    ASSERT_TRUE(from_file.ok()) << from_file.error().message;
    EXPECT_EQ(from_file->list("served_model_name"), (std::vector<std::string>{"a", "b"}));
    const auto from_flags = Config::load({.flags = {{"served_model_name", {"a,b", "c"}}}});
    ASSERT_TRUE(from_flags.ok());
    EXPECT_EQ(from_flags->list("served_model_name"), (std::vector<std::string>{"a", "b", "c"}));
}

TEST(Config, TakesAnAliasForItsKey) {
    const YamlFile file("gpu_memory_utilization: 0.5\n");
    const auto config = Config::load({.file = file.path()});
    ASSERT_TRUE(config.ok());
    EXPECT_EQ(config->number("memory_utilization"), 0.5);
}

TEST(Config, RefusesTwoNamesOfOneKeyInOneLayer) {
    EXPECT_EQ(file_error("memory_utilization: 0.5\ngpu_memory_utilization: 0.7\n"),
              ": memory_utilization and gpu_memory_utilization are one key; leave one of them out");
    EXPECT_EQ(file_error("max_num_seqs: 1\nmax-num-seqs: 2\n"),
              ": max_num_seqs and max-num-seqs are one key; leave one of them out");
    EXPECT_EQ(error_of({.environment = {{"PAGODA_GPU_MEMORY_UTILIZATION", "0.5"},
                                        {"PAGODA_MEMORY_UTILIZATION", "0.5"}}}),
              "PAGODA_MEMORY_UTILIZATION: gpu_memory_utilization and memory_utilization are one "
              "key; leave one of them out");
    EXPECT_EQ(
        error_of({.flags = {{"gpu_memory_utilization", {"0.5"}}, {"memory_utilization", {"0.7"}}}}),
        "command line: gpu_memory_utilization and memory_utilization are one key; leave one "
        "of them out");
    EXPECT_EQ(error_of({.environment = {{"PAGODA_GPU_MEMORY_UTILIZATION", "0.5"}},
                        .flags = {{"memory_utilization", {"0.7"}}}}),
              "");
}

TEST(ConfigFile, RefusesWhatIsNoMappingOfKeysToValues) {
    EXPECT_EQ(file_error("- port\n"), ":1: must be a mapping of keys to values (KEY: VALUE lines)");
    EXPECT_EQ(file_error("port: 1\nhost: x\nport: 2\n"), ":3: port stands there twice");
    EXPECT_EQ(file_error("port:\n  deep: 1\n"), ":2: port needs a value or a list of values");
    EXPECT_NE(file_error("port:\n").find("leave the line out"), std::string::npos);
    EXPECT_NE(file_error("port: [1, 2]\n").find("takes one value, got 2"), std::string::npos);
    EXPECT_NE(file_error("port: \"1\n"), "");
    EXPECT_NE(file_error("a: 1\n---\nb: 2\n").find("holds 2 YAML documents"), std::string::npos);
    EXPECT_EQ(file_error("# nothing\n"), "");
    EXPECT_EQ(error_of({.file = "/nowhere/x.yaml"}),
              "/nowhere/x.yaml: cannot be read: No such file or directory");
    EXPECT_EQ(error_of({.file = "/"}), "/: cannot be read: Is a directory");
}

TEST(Config, PrintsItselfAsYamlThatReadsBackEqual) {
    const auto first = Config::load(
        {.flags = {{"host", {"::1"}}, {"threads", {"3"}}, {"served_model_name", {"a: b", "#c"}}}});
    ASSERT_TRUE(first.ok());
    const YamlFile file(first->to_yaml());
    const auto second = Config::load({.file = file.path()});
    ASSERT_TRUE(second.ok()) << second.error().message;
    for (const ConfigKey& key : config_keys())
        EXPECT_EQ(first->text(key.name), second->text(key.name)) << key.name;
}

TEST(Config, MarksWhatThisVersionDoesNotOfferWhenItPrintsItself) {
    const std::string yaml = Config::load({})->to_yaml();
    EXPECT_NE(yaml.find("uds: \"\"  # default; not in this version\n"), std::string::npos);
    EXPECT_NE(yaml.find("preemption_mode: recompute  # default; the only value in this version\n"),
              std::string::npos);
    EXPECT_NE(yaml.find("kv_cache_dtype: auto  # default\n"), std::string::npos);
}

TEST(Config, MasksSecretsWhenItPrintsItself) {
    const auto config = Config::load({.flags = {{"api_keys", {"sk-one-secret,sk-two-secret"}}}});
    ASSERT_TRUE(config.ok());
    EXPECT_EQ(config->to_yaml().find("secret"), std::string::npos);
    EXPECT_NE(config->to_yaml().find("api_keys: [\"***\",\"***\"]  # flag"), std::string::npos);
}

TEST(Config, EveryDefaultIsAccepted) {
    for (const ConfigKey& key : config_keys()) {
        if (key.kind == KeyKind::kList) continue;
        EXPECT_EQ(flag_error(std::string(key.name), std::string(key.fallback)), "") << key.name;
    }
}

TEST(Duration, KnowsItsUnits) {
    using std::chrono::milliseconds;
    EXPECT_EQ(parse_duration("20s").value(), milliseconds(20'000));
    EXPECT_EQ(parse_duration("1.5").value(), milliseconds(1'500));
    EXPECT_EQ(parse_duration("250ms").value(), milliseconds(250));
    EXPECT_EQ(parse_duration("2m").value(), milliseconds(120'000));
    EXPECT_EQ(parse_duration("1h").value(), milliseconds(3'600'000));
    for (const char* bad : {"", "s", "-1s", "1d", "1 s", "nan", "1e300h", "inf"})
        EXPECT_FALSE(parse_duration(bad).ok()) << bad;
}

TEST(Settings, KvCacheIsF32WhenActivationsAre) {
    const auto config = Config::load({.flags = {{"activation_dtype", {"f32"}}}});
    ASSERT_TRUE(config.ok());
    const auto settings = model_settings(*config);
    ASSERT_TRUE(settings.ok());
    EXPECT_EQ(settings->kv_dtype, kernels::KvDType::kF32);
    EXPECT_EQ(settings->activation_mode, kernels::ActivationMode::kF32);
}

TEST(Settings, EveryOfferedTypeOfTheKvCacheIsOneOfTheStore) {
    for (const kernels::KvDType dtype : kernels::kKvDTypes) {
        const std::string name(kv::kv_dtype_name(dtype));
        const auto config = Config::load({.flags = {{"kv_cache_dtype", {name}}}});
        ASSERT_TRUE(config.ok()) << name;
        const auto settings = model_settings(*config);
        ASSERT_TRUE(settings.ok()) << name;
        EXPECT_EQ(settings->kv_dtype, dtype) << name;
    }
}

TEST(Settings, ThePrefixCacheIsOnUnlessItIsTurnedOff) {
    const auto plain = Config::load({});
    const auto off = Config::load({.flags = {{"enable_prefix_caching", {"false"}}}});
    ASSERT_TRUE(plain.ok() && off.ok());
    EXPECT_NE(model_settings(*plain)->scheduler.prefix_hasher, nullptr);
    EXPECT_EQ(model_settings(*off)->scheduler.prefix_hasher, nullptr);
    // Each process hashes under a key of its own.
    EXPECT_NE(model_settings(*plain)->scheduler.prefix_hasher->root("a"),
              model_settings(*plain)->scheduler.prefix_hasher->root("a"));
}

TEST(Settings, ALocalCommandTakesItsOwnNumberOfSequencesUnlessTold) {
    const auto plain = Config::load({});
    const auto told = Config::load({.flags = {{"max_num_seqs", {"7"}}}});
    ASSERT_TRUE(plain.ok() && told.ok());
    EXPECT_EQ(local_model_settings(*plain, 1)->budget.max_num_seqs, 1);
    EXPECT_EQ(local_model_settings(*told, 1)->scheduler.max_num_seqs, 7);
}

TEST(Settings, TransportLimitsOfTheServerAreChecked) {
    const auto config = Config::load({.flags = {{"idle_timeout", {"0s"}}}});
    ASSERT_TRUE(config.ok());
    EXPECT_EQ(server_settings(*config).error().message, "idle_timeout must be above 0");
}

TEST(Loopback, IsWhatOnlyThisMachineReaches) {
    for (const char* host : {"127.0.0.1", "127.9.9.9", "::1", "localhost", "::ffff:127.0.0.1"})
        EXPECT_TRUE(is_loopback(host)) << host;
    for (const char* host : {"0.0.0.0", "::", "192.168.1.2", "example.org", "", "1270.0.0.1"})
        EXPECT_FALSE(is_loopback(host)) << host;
}

}  // namespace
}  // namespace pagoda::apps
