#pragma once
// The values of a step log as JSON text, appended; for the lines and for what replay says of two
// plans that differ. Free functions.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sched/step_plan.h"

namespace pagoda::sched {

[[nodiscard]] std::string_view finish_name(FinishReason reason);

void append_text(std::string& line, std::int64_t value);
void append_text(std::string& line, std::uint64_t value);
void append_text(std::string& line, bool value);
void append_text(std::string& line, base::SeqId seq);
void append_text(std::string& line, base::BlockId block);
void append_text(std::string& line, const NewBlock& block);          // [group,block]
void append_text(std::string& line, const BlockCopy& copy);          // [group,from,to]
void append_text(std::string& line, const ReplacedBlock& replaced);  // [group,index,block]
void append_text(std::string& line, const PassedOver& over);         // [seq,by]
void append_text(std::string& line, const CachedBlocks& cached);     // [first_index,[block,...]]
void append_tokens(std::string& line, const std::vector<base::TokenId>& tokens);

template <class T>
void append_text(std::string& line, const std::vector<T>& values) {
    line += '[';
    for (const T& value : values) {
        if (&value != values.data()) line += ',';
        append_text(line, value);
    }
    line += ']';
}

}  // namespace pagoda::sched
