"""Training scripts work as they would under torchrun: DDP, loader workers, spawned processes."""

from __future__ import annotations

from grader.run.script_runs import RunScript


class TrainingConformance:
    """Real training, with loaders and processes of its own."""

    def test_a_ddp_script_trains_and_leaves_its_weights(self, run: RunScript) -> None:
        ran = run("""
            import os, torch, torch.distributed as dist
            from torch.nn.parallel import DistributedDataParallel as DDP
            dist.init_process_group("gloo")
            model = DDP(torch.nn.Linear(4, 2))
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for _ in range(3):
                optimizer.zero_grad()
                model(torch.randn(8, 4)).square().sum().backward()
                optimizer.step()
            mine = torch.cat([p.detach().flatten() for p in model.parameters()])
            both = [torch.empty_like(mine) for _ in range(2)]
            dist.all_gather(both, mine)
            print(torch.equal(*both))
            if dist.get_rank() == 0:
                torch.save(model.module.state_dict(), os.environ["OUTPUT_DIR"] + "/model.pt")
            dist.destroy_process_group()
        """)
        assert ran.exit_codes == [0, 0], ran.err()
        assert ran.out(0) == ran.out(1) == "True\n"
        assert [file.path for file in ran.record.outputs] == ["model.pt"]
        assert 0 < ran.record.outputs[0].mtime_s < ran.record.wall_s + 1
        assert ran.record.slowest_cpu_s > 0
        assert all(rank.peak_rss_bytes > 50 << 20 for rank in ran.record.ranks)

    def test_loader_workers_of_every_kind_work(self, run: RunScript) -> None:
        ran = run(
            """
            import torch
            from torch.utils.data import DataLoader, Dataset

            class Numbers(Dataset):
                def __len__(self):
                    return 12

                def __getitem__(self, index):
                    return torch.tensor(index)

            if __name__ == "__main__":
                for context in ("fork", "spawn", "forkserver"):
                    loader = DataLoader(Numbers(), batch_size=4, num_workers=2, multiprocessing_context=context)
                    print(context, sum(batch.sum().item() for batch in loader))
            """,
            nproc_per_node=1,
        )
        assert ran.out() == "fork 66\nspawn 66\nforkserver 66\n", ran.err()
        assert ran.exit_codes == [0]
        assert ran.record.ranks[0].leftovers == 0

    def test_processes_spawned_by_a_script_find_it_as_their_main_module(self, run: RunScript) -> None:
        ran = run(
            """
            import torch.multiprocessing as mp

            def child(index, words):
                print("child", index, words, flush=True)

            if __name__ == "__main__":
                mp.spawn(child, args=("hello",), nprocs=2)
                print("parent", __name__)
            """,
            nproc_per_node=1,
        )
        assert sorted(ran.out().splitlines()) == ["child 0 hello", "child 1 hello", "parent __main__"], (
            ran.err()
        )
