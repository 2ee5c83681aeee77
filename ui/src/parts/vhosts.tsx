import { useApi } from "../poll";
import { Choice } from "./form";

/** Chooses one of the virtual hosts that the user may see. */
export function VhostChoice({ value, onChange }: { value: string; onChange(value: string): void }) {
  const found = useApi<{ name: string }[]>("/vhosts?columns=name").value;
  const names = Array.isArray(found) ? found.map(({ name }) => name) : [value];
  const known = names.includes(value) ? names : [value, ...names];
  return <Choice label="Virtual host" value={value} options={known} onChange={onChange} />;
}
