/* What Pinfold's own TLS 1.3 (key log, twin hello) needs of OpenSSL beside shim.h. */
#ifndef PINFOLD_COPENSSL_TLS13_H
#define PINFOLD_COPENSSL_TLS13_H
#include <limits.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/dh.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <openssl/rand.h>
#include <stdint.h>

/* EVP_KDF-TLS13_KDF(7). OSSL_PARAM keeps pointers beyond the call that makes it, which pointers lent by Swift do not
   outlive. `salt` is the secret before (NULL: none), `key` the new input (NULL: zeros). */
static inline int pinfold_tls13_extract(EVP_KDF *_Nonnull kdf, const char *_Nonnull digest,
                                        const uint8_t *_Nullable salt, size_t salt_length,
                                        const uint8_t *_Nullable key, size_t key_length, uint8_t *_Nonnull output,
                                        size_t output_length) {
  EVP_KDF_CTX *context = EVP_KDF_CTX_new(kdf);
  if (context == NULL) return 0;
  int mode = EVP_KDF_HKDF_MODE_EXTRACT_ONLY;
  OSSL_PARAM params[7], *next = params;
  *next++ = OSSL_PARAM_construct_int(OSSL_KDF_PARAM_MODE, &mode);
  *next++ = OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, (char *)digest, 0);
  if (key != NULL) *next++ = OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, (void *)key, key_length);
  if (salt != NULL) *next++ = OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_SALT, (void *)salt, salt_length);
  *next++ = OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_PREFIX, (void *)"tls13 ", 6);
  *next++ = OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_LABEL, (void *)"derived", 7);
  *next = OSSL_PARAM_construct_end();
  int result = EVP_KDF_derive(context, output, output_length, params);
  EVP_KDF_CTX_free(context);
  return result > 0;
}

/* HKDF-Expand-Label (RFC 8446 section 7.1), for the same reason in C. */
static inline int pinfold_tls13_expand(EVP_KDF *_Nonnull kdf, const char *_Nonnull digest,
                                       const uint8_t *_Nonnull secret, size_t secret_length,
                                       const char *_Nonnull label, size_t label_length,
                                       const uint8_t *_Nullable data, size_t data_length, uint8_t *_Nonnull output,
                                       size_t output_length) {
  EVP_KDF_CTX *context = EVP_KDF_CTX_new(kdf);
  if (context == NULL) return 0;
  int mode = EVP_KDF_HKDF_MODE_EXPAND_ONLY;
  OSSL_PARAM params[7], *next = params;
  *next++ = OSSL_PARAM_construct_int(OSSL_KDF_PARAM_MODE, &mode);
  *next++ = OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, (char *)digest, 0);
  *next++ = OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, (void *)secret, secret_length);
  *next++ = OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_PREFIX, (void *)"tls13 ", 6);
  *next++ = OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_LABEL, (void *)label, label_length);
  if (data != NULL) *next++ = OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_DATA, (void *)data, data_length);
  *next = OSSL_PARAM_construct_end();
  int result = EVP_KDF_derive(context, output, output_length, params);
  EVP_KDF_CTX_free(context);
  return result > 0;
}

/* Frees what EVP_PKEY_get1_encoded_public_key(3) allocates; OPENSSL_free is a macro. */
static inline void pinfold_free_encoded(uint8_t *_Nullable memory) { OPENSSL_free(memory); }
#endif
