import type { Certificate } from '../../src/contract/certificate.ts'
import { proceed, type CertificateMove, type Observation } from '../../src/evidence/certificate.ts'

/** The certificate after observations, in their order, and its changes. */
export function proceedAll(before: Certificate, all: readonly Observation[]): { certificate: Certificate; changes: CertificateMove[] } {
  let certificate = before
  const changes: CertificateMove[] = []
  for (const one of all) {
    const next = proceed(certificate, one)
    certificate = next.certificate
    changes.push(...next.changes)
  }
  return { certificate, changes }
}
