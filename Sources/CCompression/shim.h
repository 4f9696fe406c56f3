/* The three ways to compress a certificate (RFC 8879). As in COpenSSL no _GNU_SOURCE here: PinfoldTLS sees both modules
   in one file, and the Swift library's own view of glibc is made without it. */
#ifndef PINFOLD_CCOMPRESSION_H
#define PINFOLD_CCOMPRESSION_H
#include <brotli/decode.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

/* inflateInit is a macro that adds version and size. Opens exactly one zlib stream (RFC 1950) that fills `output` to
   its last byte and uses `input` to its last byte; 1 when it did. */
static inline int pinfold_open_zlib(const uint8_t *_Nonnull input, size_t input_length, uint8_t *_Nonnull output,
                                    size_t output_length) {
  z_stream stream;
  memset(&stream, 0, sizeof stream);
  if (input_length > UINT32_MAX || output_length > UINT32_MAX || inflateInit(&stream) != Z_OK) return 0;
  stream.next_in = (uint8_t *)input;
  stream.avail_in = (uInt)input_length;
  stream.next_out = output;
  stream.avail_out = (uInt)output_length;
  int result = inflate(&stream, Z_FINISH);
  int whole = result == Z_STREAM_END && stream.avail_in == 0 && stream.avail_out == 0;
  inflateEnd(&stream);
  return whole;
}

/* What the decoder may still allocate. It makes its window as large as the stream says its content is, up to 16 MiB, and
   fills it before the first byte comes out, however little is asked for. */
struct pinfold_brotli_budget {
  size_t left;
};

static inline void *_Nullable pinfold_brotli_allocate(void *_Nullable opaque, size_t size) {
  struct pinfold_brotli_budget *budget = opaque;
  void *memory = size <= budget->left ? malloc(size) : NULL;
  size_t taken = malloc_usable_size(memory);
  if (taken > budget->left) {
    free(memory);
    return NULL;
  }
  budget->left -= taken;
  return memory;
}

static inline void pinfold_brotli_release(void *_Nullable opaque, void *_Nullable memory) {
  struct pinfold_brotli_budget *budget = opaque;
  budget->left += malloc_usable_size(memory);
  free(memory);
}

/* BrotliDecoderDecompress(3) leaves unsaid whether input was left over; the streaming calls say it. An honest stream takes
   a window of less than twice its content, for a moment an older one beside it, and tables. */
static inline int pinfold_open_brotli(const uint8_t *_Nonnull input, size_t input_length, uint8_t *_Nonnull output,
                                      size_t output_length) {
  struct pinfold_brotli_budget budget = {4 * output_length + (512 << 10)};
  BrotliDecoderState *state =
      BrotliDecoderCreateInstance(pinfold_brotli_allocate, pinfold_brotli_release, &budget);
  if (state == NULL) return 0;
  BrotliDecoderResult result =
      BrotliDecoderDecompressStream(state, &input_length, &input, &output_length, &output, NULL);
  int whole = result == BROTLI_DECODER_RESULT_SUCCESS && input_length == 0 && output_length == 0;
  BrotliDecoderDestroyInstance(state);
  return whole;
}

/* Several frames in a row would open as well: the first one has to be all of the input. The window is bounded, since a
   frame may ask for far more memory than its content needs. */
static inline int pinfold_open_zstd(const uint8_t *_Nonnull input, size_t input_length, uint8_t *_Nonnull output,
                                    size_t output_length) {
  size_t frame = ZSTD_findFrameCompressedSize(input, input_length);
  if (ZSTD_isError(frame) || frame != input_length) return 0;
  size_t written = ZSTD_decompress(output, output_length, input, input_length);
  return !ZSTD_isError(written) && written == output_length;
}
#endif
