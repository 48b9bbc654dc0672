// The fields of sentencepiece_model.proto that tell how texts become ids; the rest is about
// training.
#include "tokenizer/hf/sentencepiece_model.h"

#include <string>
#include <vector>

#include "base/text.h"
#include "tokenizer/hf/protobuf_reader.h"

namespace optima::tokenizer {
namespace {

constexpr size_t kPiecesMax = 1 << 22;

struct Model {
  std::vector<std::string_view> pieces;
  std::vector<double> scores;
  std::vector<int64_t> kinds;
  uint64_t type = 1;
  int32_t unknown = 0, bos = 1, eos = 2, pad = -1;
  bool suffix = false;
  std::string_view charsmap;
  bool add_dummy_prefix = true, remove_extra_whitespaces = true, escape_whitespaces = true;
};

int32_t id_of(const hf::ProtobufReader::Field& field) {
  return static_cast<int32_t>(static_cast<uint32_t>(field.integer));
}

bool read_piece(std::string_view bytes, Model& model) {
  hf::ProtobufReader reader(bytes);
  hf::ProtobufReader::Field field;
  std::string_view piece;
  double score = 0;
  auto kind = static_cast<int64_t>(TokenKind::normal);
  while (reader.next(field)) {
    if (field.number == 1) piece = field.bytes;
    if (field.number == 2) score = static_cast<double>(field.real());
    if (field.number == 3) kind = id_of(field);
  }
  model.pieces.push_back(piece);
  model.scores.push_back(score);
  model.kinds.push_back(kind);
  return reader.ok();
}

bool read_trainer(std::string_view bytes, Model& model) {
  hf::ProtobufReader reader(bytes);
  hf::ProtobufReader::Field field;
  while (reader.next(field)) {
    if (field.number == 3) model.type = field.integer;
    if (field.number == 24) model.suffix = field.integer != 0;
    if (field.number == 40) model.unknown = id_of(field);
    if (field.number == 41) model.bos = id_of(field);
    if (field.number == 42) model.eos = id_of(field);
    if (field.number == 43) model.pad = id_of(field);
  }
  return reader.ok();
}

bool read_normalizer(std::string_view bytes, Model& model) {
  hf::ProtobufReader reader(bytes);
  hf::ProtobufReader::Field field;
  while (reader.next(field)) {
    if (field.number == 2) model.charsmap = field.bytes;
    if (field.number == 3) model.add_dummy_prefix = field.integer != 0;
    if (field.number == 4) model.remove_extra_whitespaces = field.integer != 0;
    if (field.number == 5) model.escape_whitespaces = field.integer != 0;
  }
  return reader.ok();
}

Result<Model> read_model(std::string_view bytes) {
  Model model;
  hf::ProtobufReader reader(bytes);
  hf::ProtobufReader::Field field;
  bool whole = true;
  while (whole && reader.next(field)) {
    if (field.number == 1) whole = read_piece(field.bytes, model);
    if (field.number == 2) whole = read_trainer(field.bytes, model);
    if (field.number == 3) whole = read_normalizer(field.bytes, model);
    if (model.pieces.size() > kPiecesMax) {
      return Status(Code::format, text("tokenizer.model: more than ", kPiecesMax, " pieces"));
    }
  }
  if (!whole || !reader.ok() || model.pieces.empty()) {
    return Status(Code::format, text("tokenizer.model: no SentencePiece model (", bytes.size(),
                                     " bytes, ", model.pieces.size(), " pieces)"));
  }
  // An id may be named that the vocabulary lacks; sentencepiece then has no such token.
  const auto known = [&](int32_t id) {
    return id >= 0 && static_cast<size_t>(id) < model.pieces.size();
  };
  for (int32_t* id : {&model.unknown, &model.bos, &model.eos, &model.pad}) {
    if (!known(*id)) *id = -1;
  }
  return model;
}

}  // namespace

Result<std::unique_ptr<Tokenizer>> load_sentencepiece_model(std::string_view bytes,
                                                            const SentencePieceConfig& config) {
  OPTIMA_ASSIGN(const Model model, read_model(bytes));
  constexpr uint64_t kUnigram = 1, kBpe = 2;
  if (model.type != kUnigram && model.type != kBpe) {
    return Status(Code::unsupported, text("tokenizer.model: model type ", model.type,
                                          "; known are 1 (Unigram) and 2 (BPE)"));
  }
  if (model.suffix || !model.escape_whitespaces) {
    return Status(Code::unsupported,
                  text("tokenizer.model: ",
                       model.suffix ? "treat_whitespace_as_suffix" : "escape_whitespaces = false"));
  }
  const bool bpe = model.type == kBpe;
  VocabularySpec spec;
  spec.model = bpe ? "llama" : "t5";
  spec.tokens = model.pieces;
  spec.scores = model.scores;
  spec.kinds = model.kinds;
  spec.bos = model.bos;
  spec.eos = model.eos;
  spec.unknown = model.unknown;
  spec.pad = model.pad;
  spec.add_bos = config.add_bos >= 0 ? config.add_bos : bpe && model.bos >= 0 ? 1 : 0;
  spec.add_eos = config.add_eos;
  spec.add_space_prefix = model.add_dummy_prefix ? 1 : 0;
  spec.remove_extra_whitespaces = model.remove_extra_whitespaces;
  spec.charsmap = model.charsmap;
  spec.user_defined = UserDefined::inside;
  return Tokenizer::create(spec);
}

}  // namespace optima::tokenizer
