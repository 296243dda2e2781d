/** The admin HTTP answers whom it must not. */
import type { Fault } from '../fault.js';

export const ADMIN: readonly Fault[] = [
  {
    id: 'any-token-is-right',
    file: 'shadow-proxy/src/admin/admission.ts',
    from: 'if (equal(given, token)) return null;',
    to: "if (given !== '') return null;",
    tests: ['unit/admin/admin-server', 'unit/admin/routes'],
  },
  {
    id: 'other-pages-may-write',
    file: 'shadow-proxy/src/admin/admission.ts',
    from: "if (method !== 'GET' && method !== 'HEAD' && isForeign(headers)) {",
    to: "if (method === 'PUT' && isForeign(headers)) {",
    tests: ['unit/admin/admin-server', 'unit/admin/routes'],
  },
  {
    id: 'a-rebound-name-reaches-a-proxy-without-token',
    file: 'shadow-proxy/src/admin/admission.ts',
    from: 'if (token === null && !namesLoopback(headers.host)) {',
    to: 'if (token === null && headers.host === undefined) {',
    tests: ['unit/admin/admin-server', 'unit/admin/routes'],
  },
  {
    id: 'everything-is-public',
    file: 'shadow-proxy/src/admin/admission.ts',
    from: 'if (token === null || isPublic) return null;',
    to: 'if (token === null || !isPublic) return null;',
    tests: ['unit/admin/admin-server', 'unit/admin/routes'],
  },
  {
    id: 'an-unknown-field-of-a-promotion-is-ignored',
    file: 'shadow-proxy/src/admin/requests.ts',
    from: 'export const promoteRequest = z.strictObject({',
    to: 'export const promoteRequest = z.object({',
    tests: ['unit/admin/admin-server', 'unit/admin/routes'],
  },
];
