#pragma once

// What the decoder answers for each form, and the document that shows it.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "simulator/decode/coverage/forms.h"

namespace cb::sim {

enum class FormState : uint8_t {
  kDone,     ///< the decoder takes it
  kRefused,  ///< and will stay so: other hardware, or out of scope
  kNotYet,   ///< sm_90a has it, the simulator does not
  kWrong,    ///< the decoder takes what sm_90a does not have
};

struct FormAnswer {
  FormState state = FormState::kDone;
  std::string why;  ///< the decoder's words, without the place
};

/// Asks the decoder.
FormAnswer ask_decoder(const PtxForm& form);

/// A semantic unit of an instruction with one representative.
struct NamedForm {
  std::string name;
  PtxForm form;
};
/// Reads lines "NAME<tab>FORM".
Result<std::vector<NamedForm>> parse_named_forms(std::string_view text);

/// The document, and the forms that are kWrong.
struct CoverageTable {
  std::string document;
  std::vector<std::string> wrong;
};
CoverageTable coverage_table(const std::vector<PtxInstruction>& instructions,
                             const std::vector<NamedForm>& handlers);

}  // namespace cb::sim
