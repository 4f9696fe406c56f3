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

/* A context of EVP_MAC-HMAC(7) for a digest, to be copied (EVP_MAC_CTX_dup) and given a key; NULL when there is no such
   digest, or no memory. It has a key of zeros, since one without a key cannot be copied. OSSL_PARAM keeps pointers
   beyond the call that makes it, which pointers lent by Swift do not outlive. */
static inline EVP_MAC_CTX *_Nullable pinfold_hmac(const char *_Nonnull digest) {
  static const unsigned char zeros[EVP_MAX_MD_SIZE];
  OSSL_PARAM params[] = {OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, (char *)digest, 0),
                         OSSL_PARAM_construct_end()};
  EVP_MAC *mac = EVP_MAC_fetch(NULL, "HMAC", NULL);
  EVP_MAC_CTX *context = mac == NULL ? NULL : EVP_MAC_CTX_new(mac);
  /* The context keeps a reference of its own. */
  EVP_MAC_free(mac);
  if (context != NULL && EVP_MAC_init(context, zeros, sizeof zeros, params) == 1) return context;
  EVP_MAC_CTX_free(context);
  return NULL;
}

/* Frees what EVP_PKEY_get1_encoded_public_key(3) allocates; OPENSSL_free is a macro. */
static inline void pinfold_free_encoded(uint8_t *_Nullable memory) { OPENSSL_free(memory); }
#endif
