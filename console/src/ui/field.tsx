import type { ComponentChildren, InputHTMLAttributes, SelectHTMLAttributes, TextareaHTMLAttributes } from 'preact';
import { useId } from 'preact/hooks';

interface FieldProps {
  label: string;
  hint?: ComponentChildren;
}

type InputProps = FieldProps & Omit<InputHTMLAttributes, 'label' | 'class' | 'id'>;

export function Field({ label, hint, ...input }: InputProps) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <input
        class="input"
        autocomplete="off"
        {...input}
        id={id}
        aria-describedby={hint === undefined ? undefined : `${id}-hint`}
      />
      {hint !== undefined && (
        <span class="hint" id={`${id}-hint`}>
          {hint}
        </span>
      )}
    </div>
  );
}

/** `fault`: what is wrong with the text, in place of the hint. */
export function TextArea({
  label,
  hint,
  fault,
  ...area
}: FieldProps & { fault?: string | undefined } & Omit<TextareaHTMLAttributes, 'class' | 'id'>) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <textarea class="input" {...area} id={id} aria-invalid={fault !== undefined} aria-describedby={`${id}-hint`} />
      <span class={fault === undefined ? 'hint' : 'fault'} id={`${id}-hint`}>
        {fault ?? hint}
      </span>
    </div>
  );
}

/** `options`: value and words of each. */
export function Select({
  label,
  hint,
  options,
  ...select
}: FieldProps & { options: readonly (readonly [string, string])[] } & Omit<SelectHTMLAttributes, 'class' | 'id'>) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <select class="input" {...select} id={id}>
        {options.map(([value, text]) => (
          <option key={value} value={value}>
            {text}
          </option>
        ))}
      </select>
      {hint !== undefined && <span class="hint">{hint}</span>}
    </div>
  );
}

/** Several of a list, as fields of one name. */
export function Checks({
  label,
  name,
  options,
  chosen = [],
}: {
  label: string;
  name: string;
  options: readonly string[];
  chosen?: readonly string[];
}) {
  const id = useId();
  return (
    <div class="field" role="group" aria-labelledby={id}>
      <span class="label" id={id}>
        {label}
      </span>
      <div class="checks">
        {options.map((option) => (
          <label key={option}>
            <input type="checkbox" name={name} value={option} defaultChecked={chosen.includes(option)} />
            {option}
          </label>
        ))}
      </div>
    </div>
  );
}

/** The text of a form's field; undefined where it was left empty. */
export function textOf(form: FormData, name: string): string | undefined {
  const value = form.get(name);
  return typeof value === 'string' && value !== '' ? value : undefined;
}

export function numberOf(form: FormData, name: string): number | undefined {
  const text = textOf(form, name);
  return text === undefined ? undefined : Number(text);
}

export const textsOf = (form: FormData, name: string): string[] =>
  form.getAll(name).filter((value) => typeof value === 'string');
