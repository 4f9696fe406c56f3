/* What Pinfold's own TLS 1.3 (key log, twin hello) needs of OpenSSL beside shim.h. */
#ifndef PINFOLD_COPENSSL_TLS13_H
#define PINFOLD_COPENSSL_TLS13_H
#include <limits.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/dh.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <openssl/rand.h>
#include <stdint.h>

/* A context of EVP_MAC-HMAC(7) with its key; NULL when there is no memory. OSSL_PARAM keeps pointers beyond the call that
   makes it, which pointers lent by Swift do not outlive. */
static inline EVP_MAC_CTX *_Nullable pinfold_hmac(EVP_MAC *_Nonnull mac, const char *_Nonnull digest,
                                                  const uint8_t *_Nonnull key, size_t length) {
  EVP_MAC_CTX *context = EVP_MAC_CTX_new(mac);
  OSSL_PARAM params[] = {OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, (char *)digest, 0),
                         OSSL_PARAM_construct_end()};
  if (context != NULL && EVP_MAC_init(context, key, length, params) == 1) return context;
  EVP_MAC_CTX_free(context);
  return NULL;
}

/* Frees what EVP_PKEY_get1_encoded_public_key(3) allocates; OPENSSL_free is a macro. */
static inline void pinfold_free_encoded(uint8_t *_Nullable memory) { OPENSSL_free(memory); }
#endif
