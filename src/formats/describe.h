#pragma once
// What a model file holds, as a document for people and programs. Pure; thread-safe.

#include "base/json.h"
#include "formats/checkpoint.h"

namespace pagoda::formats {

// An object with the members
//   path, format, name, architecture
//   files      [{path, bytes}]
//   metadata   [{key, type, value}]; a long array has {count, first: [items]} and a long string
//              {bytes, start} in place of the value
//   tensors    [{name, type, shape, bytes, file}], shape outermost first
//   types      [{type, tensors, values, bytes}], the largest first
//   totals     {tensors, values, bytes}
//   tokenizer  null, or {kind, pre_tokenizer, tokens, merges, has_scores, special: {bos: {id,
//   text}, ...},
//              end_of_generation: [{id, text}], add_bos, add_eos, add_space_prefix}; rules that the
//              file does not state are null
//   chat_template  null, or {bytes, named: [names]}
[[nodiscard]] base::Json describe(const Checkpoint& checkpoint);

}  // namespace pagoda::formats
