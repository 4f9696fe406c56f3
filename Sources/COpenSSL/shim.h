/* What the Swift importer needs of OpenSSL 3. No _GNU_SOURCE here, unlike in its neighbours: the Swift library's own
   view of glibc is made without it, fd_set differs between the two, and PinfoldTLS sees both in one file. */
#ifndef PINFOLD_COPENSSL_H
#define PINFOLD_COPENSSL_H
#include <limits.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

/* Stacks are type-checked by macros over casts, which the importer does not see. */
static inline STACK_OF(X509) *_Nullable pinfold_x509_stack_new(void) { return sk_X509_new_null(); }
static inline int pinfold_x509_stack_count(const STACK_OF(X509) *_Nonnull stack) { return sk_X509_num(stack); }
static inline X509 *_Nullable pinfold_x509_stack_at(const STACK_OF(X509) *_Nonnull stack, int index) {
  return sk_X509_value(stack, index);
}
/* Takes a reference of its own to the certificate; 0 when memory is short. */
static inline int pinfold_x509_stack_push(STACK_OF(X509) *_Nonnull stack, X509 *_Nonnull certificate) {
  if (!X509_up_ref(certificate)) return 0;
  if (sk_X509_push(stack, certificate) > 0) return 1;
  X509_free(certificate);
  return 0;
}
static inline void pinfold_x509_stack_free(STACK_OF(X509) *_Nullable stack) { sk_X509_pop_free(stack, X509_free); }

/* memmem(3), which string.h keeps to itself without _GNU_SOURCE. */
static inline int pinfold_holds(const void *_Nonnull all, size_t count, const void *_Nonnull part, size_t length) {
  extern void *memmem(const void *, size_t, const void *, size_t);
  return memmem(all, count, part, length) != NULL;
}

/* Frees what i2d functions allocate; OPENSSL_free is a macro that adds file and line. */
static inline void pinfold_free(void *_Nullable memory) { OPENSSL_free(memory); }

/* ERR_get_error_all(3) without its file, line and function: the reason alone is worth telling. */
static inline unsigned long pinfold_next_error(void) { return ERR_get_error(); }
static inline int pinfold_error_is_system(unsigned long code) { return ERR_SYSTEM_ERROR(code); }

/* Macros over EVP_PKEY_CTX_ctrl or SSL_CTX_ctrl and SSL_ctrl. */
static inline int pinfold_use_pss(EVP_PKEY_CTX *_Nonnull context) {
  return EVP_PKEY_CTX_set_rsa_padding(context, RSA_PKCS1_PSS_PADDING) > 0
      && EVP_PKEY_CTX_set_rsa_pss_saltlen(context, RSA_PSS_SALTLEN_DIGEST) > 0;
}
static inline int pinfold_use_pkcs1(EVP_PKEY_CTX *_Nonnull context) {
  return EVP_PKEY_CTX_set_rsa_padding(context, RSA_PKCS1_PADDING) > 0;
}
static inline long pinfold_ctx_set_versions(SSL_CTX *_Nonnull context, int lowest, int highest) {
  return SSL_CTX_set_min_proto_version(context, lowest) && SSL_CTX_set_max_proto_version(context, highest);
}
static inline long pinfold_ctx_set_groups(SSL_CTX *_Nonnull context, const char *_Nonnull names) {
  return SSL_CTX_set1_groups_list(context, names);
}
static inline long pinfold_ctx_set_schemes(SSL_CTX *_Nonnull context, const char *_Nonnull names) {
  return SSL_CTX_set1_sigalgs_list(context, names);
}
static inline void pinfold_ctx_forget_sessions(SSL_CTX *_Nonnull context) {
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
}
/* SSL_OP_ values are macros. Servers without secure renegotiation are reached: a probe never renegotiates. */
static inline void pinfold_ctx_never_renegotiate(SSL_CTX *_Nonnull context) {
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_LEGACY_SERVER_CONNECT);
}
static inline void pinfold_ctx_strict_client(SSL_CTX *_Nonnull context) {
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
}
static inline long pinfold_set_server_name(SSL *_Nonnull ssl, const char *_Nonnull name) {
  return SSL_set_tlsext_host_name(ssl, (char *)name);
}
static inline long pinfold_ctx_add_chain(SSL_CTX *_Nonnull context, X509 *_Nonnull certificate) {
  return SSL_CTX_add1_chain_cert(context, certificate);
}
static inline long pinfold_request_status(SSL *_Nonnull ssl) {
  return SSL_set_tlsext_status_type(ssl, TLSEXT_STATUSTYPE_ocsp);
}
static inline size_t pinfold_bio_pending(BIO *_Nonnull bio) { return BIO_ctrl_pending(bio); }

/* EVP_PKEY_Q_keygen(3) is variadic. */
static inline EVP_PKEY *_Nullable pinfold_generate_p256(void) { return EVP_EC_gen("P-256"); }

/* 120 random bits: unique, positive, and short enough for every reader (RFC 5280, 4.1.2.2). */
static inline int pinfold_set_random_serial(X509 *_Nonnull certificate) {
  BIGNUM *number = BN_new();
  int done = number != NULL && BN_rand(number, 120, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY)
      && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(certificate)) != NULL;
  BN_free(number);
  return done;
}

/* Adds an extension in the syntax of x509v3_config(5); the context lives on the stack only. */
static inline int pinfold_add_extension(X509 *_Nonnull certificate, X509 *_Nonnull issuer, int nid,
                                        const char *_Nonnull value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, NULL, NULL, 0);
  X509_EXTENSION *extension = X509V3_EXT_nconf_nid(NULL, &context, nid, value);
  if (extension == NULL) return 0;
  int added = X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
  return added;
}

/* EC_GROUP_precompute_mult(3) is deprecated without a successor; it is the one way to a table for a base point
   other than the curve's own. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
static inline int pinfold_precompute(EC_GROUP *_Nonnull group) {
  return EC_GROUP_precompute_mult(group, NULL) && EC_GROUP_have_precompute_mult(group);
}

/* EC_POINT_get_Jprojective_coordinates_GFp(3), deprecated too: X and Z of a point, without the division that
   EC_POINT_get_affine_coordinates(3) does. */
static inline int pinfold_jacobian(const EC_GROUP *_Nonnull group, const EC_POINT *_Nonnull point, BIGNUM *_Nonnull x,
                                   BIGNUM *_Nonnull z, BN_CTX *_Nullable scratch) {
  return EC_POINT_get_Jprojective_coordinates_GFp(group, point, x, NULL, z, scratch);
}
#pragma GCC diagnostic pop
#endif
