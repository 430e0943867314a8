import { describe, expect, it } from '@jest/globals';

import { toErrorDetail, toErrorObject } from '../../../../shared/errors/error-body.ts';
import { ServiceError } from '../../../../shared/errors/service-error.ts';

describe('the error object', () => {
  it('holds the four fields of the interface and no others that are unknown', () => {
    const body = toErrorObject({ code: 'timeout', message: 'Too slow.' }, 'req_1');

    expect(body).toEqual({ code: 'timeout', message: 'Too slow.', type: 'timeout_error', request_id: 'req_1' });
  });

  it('names the field and the reason where there are any', () => {
    const detail = { code: 'insufficient_credits', message: 'Held.', param: 'model', reason: 'in_flight' } as const;

    expect(toErrorObject(detail, 'req_1')).toMatchObject({
      param: 'model',
      reason: 'in_flight',
      type: 'billing_error',
    });
  });

  it('shows nothing of the cause, which is for the operator', () => {
    const error = new ServiceError('model_unavailable', 'Try again.', {
      cause: new Error('mongodb://user:secret@10.0.0.1'),
      retryAfterSeconds: 3,
    });

    expect(toErrorDetail(error)).toEqual({ code: 'model_unavailable', message: 'Try again.', retryAfterSeconds: 3 });
    expect(JSON.stringify(toErrorObject(toErrorDetail(error), 'req_1'))).not.toContain('secret');
  });
});
